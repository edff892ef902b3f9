package scheduler

import "github.com/cronlatch/cronlatch/jobs"

// SQLite evaluates 'now' once per statement.
const sqliteNow = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`

const sqliteEarlier = `FROM job_runs AS e
	WHERE e.job = r.job AND e.state <> 'finished' AND (e.scheduled_at, e.id) < (r.scheduled_at, r.id)`

// sqliteReturning is jobs.RunColumns without the alias, which RETURNING does not know here.
const sqliteReturning = `RETURNING id, job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by,
	resource, overlap, on_lost, max_attempts, state, outcome, reason, detail, replica, owner, fencing_token, created_at,
	started_at, finished_at, exit_code, signal, late_outcome`

// There are no row locks: every transaction begins IMMEDIATE, so its reads are still true when it writes.
//
//nolint:gochecknoglobals // a table of statements
var sqliteQueries = queries{
	now: `SELECT ` + sqliteNow + ` AS now`,

	look: `
SELECT ` + sqliteNow + ` AS now,
	EXISTS (SELECT 1 FROM job_runs WHERE state = 'pending' AND due_at <= ` + sqliteNow + `) AS due,
	EXISTS (SELECT 1 FROM job_runs AS r WHERE r.state = 'running' AND NOT EXISTS (
		SELECT 1 FROM distributed_locks AS l
		WHERE l.resource = r.resource AND l.fencing_token = r.fencing_token AND l.expires_at > ` + sqliteNow + `)) AS lost`,

	addPositions: `
INSERT INTO plan_positions (job, schedule_hash, position)
SELECT value->>'job', value->>'schedule_hash', ` + sqliteNow + ` FROM json_each(?) WHERE true
ON CONFLICT (job, schedule_hash) DO NOTHING`,

	readPositions: sqlitePositions,
	lockPositions: sqlitePositions,

	movePositions: `
UPDATE plan_positions SET position = x.value->>'position' FROM json_each(?) AS x
WHERE job = x.value->>'job' AND schedule_hash = x.value->>'schedule_hash' AND position < x.value->>'position'`,

	insertRuns: jobs.InsertRunsSQLite,

	ended: `
SELECT r.id,
	(SELECT e.id ` + sqliteEarlier + ` ORDER BY e.scheduled_at, e.id LIMIT 1) AS earlier,
	l.acquired_at AS held_since, l.expires_at AS held_until, l.metadata AS held_metadata,
	coalesce(r.start_by <= ` + sqliteNow + `, 0) AS expired
FROM job_runs AS r
LEFT JOIN distributed_locks AS l ON l.resource = r.resource AND l.expires_at > ` + sqliteNow + `
WHERE r.state = 'pending' AND r.due_at <= ` + sqliteNow + ` AND (
	r.start_by <= ` + sqliteNow + `
	OR (r.overlap = 'skip' AND EXISTS (SELECT 1 ` + sqliteEarlier + `))
	OR (r.overlap = 'queue' AND EXISTS (SELECT 1 ` + sqliteEarlier + ` LIMIT 1 OFFSET 1)))
ORDER BY r.id LIMIT 500`,

	candidates: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.state = 'pending' AND r.due_at <= ` + sqliteNow + `
	AND (r.start_by IS NULL OR r.start_by > ` + sqliteNow + `)
	AND r.job NOT IN (SELECT value FROM json_each(?))
	AND NOT EXISTS (SELECT 1 ` + sqliteEarlier + `)
	AND NOT EXISTS (SELECT 1 FROM distributed_locks AS l WHERE l.resource = r.resource AND l.expires_at > ` + sqliteNow + `)
ORDER BY r.due_at, r.id LIMIT ?`,

	markRunning: `
UPDATE job_runs
SET state = 'running', replica = x.value->>'replica', owner = x.value->>'owner',
	fencing_token = x.value->>'fencing_token', started_at = ` + sqliteNow + `
FROM json_each(?) AS x
WHERE job_runs.id = x.value->>'id' AND state = 'pending'
` + sqliteReturning,

	endRuns: `
UPDATE job_runs
SET state = 'finished', outcome = x.value->>'outcome', reason = x.value->>'reason', detail = x.value->'detail',
	exit_code = x.value->>'exit_code', signal = x.value->>'signal', finished_at = ` + sqliteNow + `
FROM json_each(?) AS x
WHERE job_runs.id = x.value->>'id' AND state = x.value->>'from_state'
	AND (x.value->>'fencing_token' = 0 OR fencing_token = x.value->>'fencing_token')
` + sqliteReturning,

	lost: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.state = 'running' AND NOT EXISTS (
	SELECT 1 FROM distributed_locks AS l
	WHERE l.resource = r.resource AND l.fencing_token = r.fencing_token AND l.expires_at > ` + sqliteNow + `)
ORDER BY r.id LIMIT 100`,

	lateOutcome: `UPDATE job_runs SET late_outcome = ? WHERE id = ? AND late_outcome IS NULL`,
	byID:        `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.id = ?`,
	byOwner: `
SELECT ` + jobs.RunColumns + ` FROM job_runs AS r
WHERE r.state = 'running' AND r.owner IN (SELECT value FROM json_each(?))`,

	storeOutput: `
INSERT INTO run_outputs (run_id, head, tail, total_bytes) VALUES (?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING`,

	join: `
INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, running, joined_at, seen_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ` + sqliteNow + `, ` + sqliteNow + `)`,
	beat: `
UPDATE replicas SET seen_at = ` + sqliteNow + `, running = ?, draining = ?, definitions_hash = ?
WHERE boot_nonce = ? AND left_at IS NULL AND seen_at > ` + sqliteNow + ` - ?
	AND id = (SELECT max(id) FROM replicas WHERE boot_nonce = ?)`,
	leave: `UPDATE replicas SET left_at = ` + sqliteNow + `, seen_at = ` + sqliteNow + ` WHERE boot_nonce = ? AND left_at IS NULL`,
	lifetimes: `
SELECT joined_at, coalesce(left_at, seen_at) AS until FROM replicas
WHERE joined_at <= ? AND coalesce(left_at, seen_at) >= ? ORDER BY joined_at LIMIT 10000`,

	audit: `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason, detail)
SELECT ` + sqliteNow + `, value->>'action', value->>'outcome', 'replica', value->>'replica', value->>'job', value->>'run_id',
	value->>'resource', value->>'owner', value->>'fencing_token', value->>'replica', value->>'reason', value->'detail'
FROM json_each(?)`,
}

const sqlitePositions = `
SELECT p.job, p.schedule_hash, p.position
FROM plan_positions AS p JOIN json_each(?) AS x
	ON p.job = x.value->>'job' AND p.schedule_hash = x.value->>'schedule_hash'
ORDER BY p.job, p.schedule_hash`
