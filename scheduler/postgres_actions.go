package scheduler

import "github.com/cronlatch/cronlatch/jobs"

// postgresYields says that r does not wait for e: e is of a backfill, has not begun, and r is not of one.
const postgresYields = `NOT (e.state = 'pending' AND e.limits <> '{}' AND e.limits::text LIKE '%"backfill:%'
	AND r.limits::text NOT LIKE '%"backfill:%')`

//nolint:gochecknoglobals // a table of statements
var postgresActions = actionQueries{
	// The first number has no meaning and must never change; the second one is the job.
	lockJob: `SELECT pg_advisory_xact_lock(60431177, hashtext(?))`,
	lockRun: `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.id = ? FOR UPDATE`,
	first:   `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.job = ? AND r.occurrence = ? AND r.attempt = 1`,
	last: `
SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.job = ? AND r.occurrence = ? ORDER BY r.attempt DESC LIMIT 1`,

	inTheWay: `
SELECT ` + jobs.RunColumns + ` FROM job_runs AS r
WHERE r.job = ? AND r.state <> 'finished' AND r.scheduled_at <= statement_timestamp()
	AND NOT (r.state = 'pending' AND (` + postgresPaused + ` OR r.limits::text LIKE '%"backfill:%'))
ORDER BY r.state = 'running' DESC, r.scheduled_at, r.id LIMIT 1`,

	release: `
UPDATE job_runs AS r SET state = 'pending', due_at = clock_timestamp() WHERE r.id = ? AND r.state = 'held'
RETURNING ` + jobs.RunColumns,

	lastAttempts: `
SELECT DISTINCT ON (r.occurrence) r.occurrence, r.id, r.attempt, r.state, r.outcome FROM job_runs AS r
WHERE r.job = ? AND r.occurrence IN (SELECT jsonb_array_elements_text(?::jsonb))
ORDER BY r.occurrence, r.attempt DESC`,
	markers: `
SELECT m.resource, m.run_id FROM resource_markers AS m
WHERE m.job = ? AND m.resource IN (SELECT jsonb_array_elements_text(?::jsonb))`,

	audit: `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, run_id, resource, reason, detail)
VALUES (clock_timestamp(), ?, 'success', 'user', ?, ?, ?, ?, ?, ?::jsonb)`,
}
