package scheduler

//nolint:gochecknoglobals // a table of statements
var sqliteWaits = waitQueries{
	waiting: `
WITH ` + sqliteUsed + `, r AS MATERIALIZED (
	SELECT * FROM job_runs
	WHERE state = 'pending' AND due_at <= ` + sqliteNow + ` - ?
		AND (start_by IS NULL OR start_by > ` + sqliteNow + `)
	ORDER BY due_at, id LIMIT ?)
SELECT r.id, r.job, r.only_on, r.limits,
	(SELECT e.id ` + sqliteEarlier + ` AND r.earlier <> 'allow' ORDER BY e.scheduled_at, e.id LIMIT 1) AS earlier,
	(SELECT e.state ` + sqliteEarlier + ` AND r.earlier <> 'allow' ORDER BY e.scheduled_at, e.id LIMIT 1) AS earlier_state,
	l.fencing_token AS held_token, l.acquired_at AS held_since, l.expires_at AS held_until, l.metadata AS held_metadata,
	(` + sqliteFull + `) AS full_tag,
	(SELECT group_concat(w.cause || ' ' || w.holder, char(10)) FROM run_waits AS w WHERE w.run_id = r.id) AS noted
FROM r LEFT JOIN distributed_locks AS l ON l.resource = r.resource AND l.expires_at > ` + sqliteNow + `
WHERE NOT ` + sqlitePaused + ` AND (r.earlier = 'allow' OR NOT EXISTS (` + sqliteRunning + `))
ORDER BY r.id`,

	// A run that was claimed or deleted meanwhile has nothing to wait for.
	add: `
INSERT INTO run_waits (run_id, cause, holder, seen_at, seen_by, detail)
SELECT x.value->>'run_id', x.value->>'cause', x.value->>'holder', ` + sqliteNow + `, x.value->>'seen_by', x.value->'detail'
FROM json_each(?) AS x
WHERE EXISTS (SELECT 1 FROM job_runs AS r WHERE r.id = x.value->>'run_id' AND r.state = 'pending')
ON CONFLICT (run_id, cause, holder) DO NOTHING`,

	read: `
SELECT run_id, cause, holder, seen_at, seen_by, detail FROM run_waits
WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY run_id, seen_at, cause, holder`,
}
