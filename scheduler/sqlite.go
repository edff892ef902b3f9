package scheduler

import "github.com/cronlatch/cronlatch/jobs"

// SQLite evaluates 'now' once per statement.
const sqliteNow = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`

const sqliteEarlier = `FROM job_runs AS e
	WHERE e.job = r.job AND e.state <> 'finished' AND (e.scheduled_at, e.id) < (r.scheduled_at, r.id)`

// sqliteDone selects the marker that r is once_per for. A manual trigger is no occurrence.
const sqliteDone = `FROM resource_markers AS m
	WHERE r.once_per = 'resource' AND substr(r.occurrence, 1, 2) = 's:' AND m.job = r.job AND m.resource = r.resource`

// sqliteUsed counts the running runs by their limited tags, once for a whole statement.
const sqliteUsed = `used AS MATERIALIZED (
	SELECT t.key AS tag, count(*) AS n FROM job_runs AS q, json_each(q.limits) AS t
	WHERE q.state = 'running' AND q.limits <> '{}' GROUP BY t.key)`

// sqliteFull selects a tag of r whose limit is reached.
const sqliteFull = `SELECT used.tag FROM json_each(r.limits) AS l JOIN used ON used.tag = l.key
	WHERE used.n >= l.value ORDER BY used.tag LIMIT 1`

// sqliteReturning is jobs.RunColumns without the alias, which RETURNING does not know here.
const sqliteReturning = `RETURNING id, job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by,
	resource, overlap, on_lost, max_attempts, state, outcome, reason, detail, replica, owner, fencing_token, created_at,
	started_at, finished_at, exit_code, signal, late_outcome, retry, earlier, once_per, limits, cancel_reason, cancel_detail`

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
		WHERE l.resource = r.resource AND l.fencing_token = r.fencing_token AND l.expires_at > ` + sqliteNow + `)) AS lost,
	EXISTS (SELECT 1 FROM job_runs WHERE state = 'running' AND cancel_reason <> '') AS cancels`,

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
WITH ` + sqliteUsed + `
SELECT r.id,
	(SELECT e.id ` + sqliteEarlier + ` AND r.earlier <> 'allow' ORDER BY e.scheduled_at, e.id LIMIT 1) AS earlier,
	l.acquired_at AS held_since, l.expires_at AS held_until, l.metadata AS held_metadata,
	(SELECT m.run_id ` + sqliteDone + `) AS done_by,
	(` + sqliteFull + `) AS full_tag, r.limits,
	coalesce(r.start_by <= ` + sqliteNow + `, 0) AS expired
FROM job_runs AS r
LEFT JOIN distributed_locks AS l ON l.resource = r.resource AND l.expires_at > ` + sqliteNow + `
WHERE r.state = 'pending' AND r.due_at <= ` + sqliteNow + ` AND (
	r.start_by <= ` + sqliteNow + `
	OR (r.once_per <> '' AND EXISTS (SELECT 1 ` + sqliteDone + `))
	OR (r.overlap = 'skip' AND EXISTS (SELECT 1 ` + sqliteEarlier + `))
	OR (r.overlap = 'queue' AND EXISTS (SELECT 1 ` + sqliteEarlier + ` LIMIT 1 OFFSET 1)))
ORDER BY r.id LIMIT 500`,

	candidates: `
WITH ` + sqliteUsed + `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.state = 'pending' AND r.due_at <= ` + sqliteNow + `
	AND (r.start_by IS NULL OR r.start_by > ` + sqliteNow + `)
	AND r.job NOT IN (SELECT value FROM json_each(?))
	AND NOT EXISTS (SELECT 1 ` + sqliteEarlier + ` AND r.earlier <> 'allow')
	AND (r.once_per = '' OR NOT EXISTS (SELECT 1 ` + sqliteDone + `))
	AND (r.limits = '{}' OR NOT EXISTS (` + sqliteFull + `))
	AND NOT EXISTS (SELECT 1 FROM distributed_locks AS l WHERE l.resource = r.resource AND l.expires_at > ` + sqliteNow + `)
ORDER BY r.due_at, r.id LIMIT ?`,

	// The transaction is the only one that writes: there are no counters to lock.
	countTags: `
SELECT t.key AS tag, count(*) AS n FROM job_runs AS q, json_each(q.limits) AS t
WHERE q.state = 'running' AND q.limits <> '{}' GROUP BY t.key`,

	done: `
SELECT r.id FROM job_runs AS r
WHERE r.id IN (SELECT value FROM json_each(?)) AND EXISTS (SELECT 1 ` + sqliteDone + `)`,
	addMarker: `
INSERT INTO resource_markers (job, resource, run_id, at)
SELECT job, resource, id, ` + sqliteNow + ` FROM job_runs WHERE id = ?
ON CONFLICT (job, resource) DO NOTHING`,

	replaced: `
SELECT e.id, e.state, r.id AS replaced_by
FROM job_runs AS r JOIN job_runs AS e
	ON e.job = r.job AND e.state IN ('pending', 'running') AND (e.scheduled_at, e.id) < (r.scheduled_at, r.id)
WHERE r.state = 'pending' AND r.earlier = 'replace' AND r.due_at <= ` + sqliteNow + `
	AND (r.start_by IS NULL OR r.start_by > ` + sqliteNow + `) AND e.cancel_reason = ''
ORDER BY e.id, r.id LIMIT 500`,
	askToEnd: `
UPDATE job_runs SET cancel_reason = x.value->>'reason', cancel_detail = x.value->'detail'
FROM json_each(?) AS x
WHERE job_runs.id = x.value->>'id' AND state = 'running' AND cancel_reason = ''`,
	cancelling: `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.state = 'running' AND r.cancel_reason <> '' ORDER BY r.id`,

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
