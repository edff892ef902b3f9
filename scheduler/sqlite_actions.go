package scheduler

import "github.com/cronlatch/cronlatch/jobs"

// sqliteYields says that r does not wait for e: e is of a backfill, has not begun, and r is not of one.
const sqliteYields = `NOT (e.state = 'pending' AND e.limits <> '{}' AND instr(e.limits, '"backfill:') > 0
	AND instr(r.limits, '"backfill:') = 0)`

// The transaction is the only one that writes: there is no job to lock.
//
//nolint:gochecknoglobals // a table of statements
var sqliteActions = actionQueries{
	lockRun: `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.id = ?`,
	first:   `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.job = ? AND r.occurrence = ? AND r.attempt = 1`,
	last: `
SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.job = ? AND r.occurrence = ? ORDER BY r.attempt DESC LIMIT 1`,

	inTheWay: `
SELECT ` + jobs.RunColumns + ` FROM job_runs AS r
WHERE r.job = ? AND r.state <> 'finished' AND r.scheduled_at <= ` + sqliteNow + `
	AND NOT (r.state = 'pending' AND (` + sqlitePaused + ` OR instr(r.limits, '"backfill:') > 0))
ORDER BY r.state = 'running' DESC, r.scheduled_at, r.id LIMIT 1`,

	release: `UPDATE job_runs SET state = 'pending', due_at = ` + sqliteNow + ` WHERE id = ? AND state = 'held' ` + sqliteReturning,

	lastAttempts: `
SELECT r.occurrence, r.id, max(r.attempt) AS attempt, r.state, r.outcome FROM job_runs AS r
WHERE r.job = ? AND r.occurrence IN (SELECT value FROM json_each(?))
GROUP BY r.occurrence`,
	markers: `
SELECT m.resource, m.run_id FROM resource_markers AS m
WHERE m.job = ? AND m.resource IN (SELECT value FROM json_each(?))`,

	audit: `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, run_id, resource, reason, detail)
VALUES (` + sqliteNow + `, ?, 'success', 'user', ?, ?, ?, ?, ?, ?)`,
}
