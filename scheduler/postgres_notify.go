package scheduler

import "github.com/cronlatch/cronlatch/jobs"

// Two replicas never insert the same message or trouble at the same time: each has the lock of the step alone. The number
// has no meaning, and must never change.
//
//nolint:gochecknoglobals // a table of statements
var postgresNotify = notifyQueries{
	tryLock: `SELECT pg_try_advisory_xact_lock(6043117720915386413) AS alone`,

	listened: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.notify AND r.state = 'finished' AND (r.job IN (SELECT jsonb_array_elements_text(?::jsonb))
	OR r.finished_at < statement_timestamp() - interval '1 day')
ORDER BY r.finished_at, r.id LIMIT ?
FOR UPDATE OF r`,
	unmark: `UPDATE job_runs SET notify = false WHERE id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint)`,

	late: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE (r.state = 'running' OR NOT ` + postgresPaused + `) AND r.id IN (
	SELECT q.id
	FROM jsonb_to_recordset(?::jsonb) AS x (job text, after bigint, channel text)
	JOIN job_runs AS q ON q.job = x.job AND q.state <> 'finished' AND q.attempt = 1 AND q.trigger <> 'backfill'
		AND left(q.occurrence, 2) <> 'm:'
		AND coalesce(q.started_at, statement_timestamp()) - q.scheduled_at > x.after * interval '1 millisecond'
	WHERE NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.key = 'late:' || q.id || ':' || x.channel))
ORDER BY r.id LIMIT ?`,

	addMessages: `
INSERT INTO outbox (key, channel, event, job, run_id, payload, created_at, due_at)
SELECT key, channel, event, job, run_id, payload, clock_timestamp(), clock_timestamp() + wait * interval '1 millisecond'
FROM jsonb_to_recordset(?::jsonb) AS x (key text, channel text, event text, job text, run_id bigint, payload jsonb, wait bigint)
ORDER BY key COLLATE "C"
ON CONFLICT (key) DO NOTHING`,

	troubles: `SELECT job, event, run_id, since FROM job_troubles WHERE job IN (SELECT jsonb_array_elements_text(?::jsonb))`,
	addTroubles: `
INSERT INTO job_troubles (job, event, run_id, since)
SELECT job, event, run_id, since
FROM jsonb_to_recordset(?::jsonb) AS x (job text, event text, run_id bigint, since timestamptz)
ORDER BY job COLLATE "C"
ON CONFLICT (job) DO UPDATE SET event = excluded.event, run_id = excluded.run_id, since = excluded.since`,
	endTrouble: `DELETE FROM job_troubles WHERE job IN (SELECT jsonb_array_elements_text(?::jsonb))`,
}
