package scheduler

import "github.com/cronlatch/cronlatch/jobs"

//nolint:gochecknoglobals // a table of statements
var sqliteNotify = notifyQueries{
	listened: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.notify AND r.state = 'finished' AND (r.job IN (SELECT value FROM json_each(?))
	OR r.finished_at < ` + sqliteNow + ` - 86400000)
ORDER BY r.finished_at, r.id LIMIT ?`,
	unmark: `UPDATE job_runs SET notify = 0 WHERE id IN (SELECT value FROM json_each(?))`,

	late: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE (r.state = 'running' OR NOT ` + sqlitePaused + `) AND r.id IN (
	SELECT q.id
	FROM json_each(?) AS x JOIN job_runs AS q ON q.job = x.value->>'job' AND q.state <> 'finished' AND q.attempt = 1
		AND q.trigger <> 'backfill' AND substr(q.occurrence, 1, 2) <> 'm:'
		AND coalesce(q.started_at, ` + sqliteNow + `) - q.scheduled_at > x.value->>'after'
	WHERE NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.key = 'late:' || q.id || ':' || (x.value->>'channel')))
ORDER BY r.id LIMIT ?`,

	addMessages: `
INSERT INTO outbox (key, channel, event, job, run_id, payload, created_at, due_at)
SELECT value->>'key', value->>'channel', value->>'event', value->>'job', value->>'run_id', value->'payload', ` +
		sqliteNow + `, ` + sqliteNow + ` + (value->>'wait')
FROM json_each(?) WHERE true
ON CONFLICT (key) DO NOTHING`,

	troubles: `SELECT job, event, run_id, since FROM job_troubles WHERE job IN (SELECT value FROM json_each(?))`,
	addTroubles: `
INSERT INTO job_troubles (job, event, run_id, since)
SELECT value->>'job', value->>'event', value->>'run_id', value->>'since' FROM json_each(?) WHERE true
ON CONFLICT (job) DO UPDATE SET event = excluded.event, run_id = excluded.run_id, since = excluded.since`,
	endTrouble: `DELETE FROM job_troubles WHERE job IN (SELECT value FROM json_each(?))`,
}
