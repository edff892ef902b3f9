package scheduler

//nolint:gochecknoglobals // a table of statements
var postgresWaits = waitQueries{
	waiting: `
WITH ` + postgresUsed + `, r AS MATERIALIZED (
	SELECT * FROM job_runs
	WHERE state = 'pending' AND due_at <= statement_timestamp() - ? * interval '1 millisecond'
		AND (start_by IS NULL OR start_by > statement_timestamp())
	ORDER BY due_at, id LIMIT ?)
SELECT r.id, r.job, r.only_on, r.limits,
	(SELECT e.id ` + postgresEarlier + ` AND r.earlier <> 'allow' ORDER BY e.scheduled_at, e.id LIMIT 1) AS earlier,
	(SELECT e.state ` + postgresEarlier + ` AND r.earlier <> 'allow' ORDER BY e.scheduled_at, e.id LIMIT 1) AS earlier_state,
	l.fencing_token AS held_token, l.acquired_at AS held_since, l.expires_at AS held_until, l.metadata AS held_metadata,
	(` + postgresFull + `) AS full_tag,
	(SELECT string_agg(w.cause || ' ' || w.holder, chr(10)) FROM run_waits AS w WHERE w.run_id = r.id) AS noted
FROM r LEFT JOIN distributed_locks AS l ON l.resource = r.resource AND l.expires_at > clock_timestamp()
WHERE NOT ` + postgresPaused + ` AND (r.earlier = 'allow' OR (` + postgresRunning + `) IS NULL)
ORDER BY r.id`,

	// A run that was claimed or deleted meanwhile has nothing to wait for.
	add: `
INSERT INTO run_waits (run_id, cause, holder, seen_at, seen_by, detail)
SELECT x.run_id, x.cause, x.holder, clock_timestamp(), x.seen_by, x.detail
FROM jsonb_to_recordset(?::jsonb) AS x (run_id bigint, cause text, holder text, seen_by text, detail jsonb)
JOIN job_runs AS r ON r.id = x.run_id AND r.state = 'pending'
ORDER BY x.run_id, x.cause COLLATE "C", x.holder COLLATE "C"
ON CONFLICT (run_id, cause, holder) DO NOTHING`,

	read: `
SELECT run_id, cause, holder, seen_at, seen_by, detail FROM run_waits
WHERE run_id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint) ORDER BY run_id, seen_at, cause, holder`,
}
