package scheduler

import "github.com/cronlatch/cronlatch/jobs"

// SQLite evaluates 'now' once per statement.
const sqliteNow = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`

const sqliteEarlier = `FROM job_runs AS e
	WHERE e.job = r.job AND e.state <> 'finished' AND (e.scheduled_at, e.id) < (r.scheduled_at, r.id)
	AND ` + sqliteMoves + `
	AND ` + sqliteYields

// sqliteDone selects the marker that r is once_per for. A manual trigger is no occurrence.
const sqliteDone = `FROM resource_markers AS m
	WHERE r.once_per = 'resource' AND substr(r.occurrence, 1, 2) <> 'm:' AND m.job = r.job AND m.resource = r.resource`

// sqliteEnded selects runs of x's job that have ended, each with its last attempt.
const sqliteEnded = `FROM job_runs AS f
	WHERE f.job = x.value->>'job' AND f.state = 'finished' AND NOT EXISTS (
		SELECT 1 FROM job_runs AS n WHERE n.job = f.job AND n.occurrence = f.occurrence AND n.attempt > f.attempt)`

// sqliteUsed counts the running runs by their limited tags, once for a whole statement.
const sqliteUsed = `used AS MATERIALIZED (
	SELECT t.key AS tag, count(*) AS n FROM job_runs AS q, json_each(q.limits) AS t
	WHERE q.state = 'running' AND q.limits <> '{}' GROUP BY t.key)`

// sqliteFull selects a tag of r whose limit is reached.
const sqliteFull = `SELECT used.tag FROM json_each(r.limits) AS l JOIN used ON used.tag = l.key
	WHERE used.n >= l.value ORDER BY used.tag LIMIT 1`

// sqliteRunning selects a running run of r's job, earlier or not: a manual run may have gone before one that was paused.
const sqliteRunning = `SELECT 1 FROM job_runs AS q WHERE q.job = r.job AND q.state = 'running'`

// sqliteReturning is jobs.RunColumns without the alias, which RETURNING does not know here.
const sqliteReturning = `RETURNING id, job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by,
	resource, overlap, on_lost, max_attempts, state, outcome, reason, detail, replica, owner, fencing_token, created_at,
	started_at, finished_at, exit_code, signal, late_outcome, retry, earlier, once_per, limits, cancel_reason, cancel_detail,
	follow, period, follows, only_on, params, notify`

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
	EXISTS (SELECT 1 FROM job_runs WHERE follow AND state = 'finished') AS follow,
	EXISTS (SELECT 1 FROM job_runs WHERE notify AND state = 'finished') AS notify,
	EXISTS (SELECT 1 FROM replicas WHERE boot_nonce = ? AND drain_asked_at IS NOT NULL) AS drain`,

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
SELECT r.id, r.job, r.occurrence, r.start_by, r.only_on,
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
	AND NOT ` + sqlitePaused + `
	AND (r.only_on = '{}' OR NOT EXISTS (SELECT 1 FROM json_each(r.only_on) AS o LEFT JOIN json_each(?) AS h ON h.key = o.key
		WHERE h.value IS NULL OR h.value NOT IN (SELECT v.value FROM json_each(o.value) AS v)))
	AND NOT EXISTS (SELECT 1 ` + sqliteEarlier + ` AND r.earlier <> 'allow')
	AND (r.earlier = 'allow' OR NOT EXISTS (` + sqliteRunning + `))
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

	followed: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.follow AND r.state = 'finished' AND (r.job IN (SELECT value FROM json_each(?))
	OR r.finished_at < ` + sqliteNow + ` - 86400000)
ORDER BY r.id LIMIT ?`,
	repeated: `
SELECT r.id FROM job_runs AS r
WHERE r.id IN (SELECT value FROM json_each(?)) AND EXISTS (
	SELECT 1 FROM job_runs AS n WHERE n.job = r.job AND n.occurrence = r.occurrence AND n.attempt > r.attempt)`,
	upstream: `
WITH x AS MATERIALIZED (
	SELECT (SELECT f.id ` + sqliteEnded + ` AND f.occurrence = x.value->>'occurrence' LIMIT 1) AS id
	FROM json_each(?) AS x WHERE x.value->>'period' = ''
	UNION ALL
	SELECT (SELECT f.id ` + sqliteEnded + ` AND f.period = x.value->>'period' AND f.period <> '' AND substr(f.occurrence, 1, 2) <> 'm:'
		ORDER BY f.finished_at, f.id LIMIT 1)
	FROM json_each(?) AS x WHERE x.value->>'period' <> '')
SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.id IN (SELECT id FROM x)`,
	unmarkFollow: `UPDATE job_runs SET follow = 0 WHERE id IN (SELECT value FROM json_each(?))`,

	replaced: `
SELECT e.id, e.state, r.id AS replaced_by
FROM job_runs AS r JOIN job_runs AS e
	ON e.job = r.job AND e.state IN ('pending', 'running') AND (e.scheduled_at, e.id) < (r.scheduled_at, r.id)
WHERE r.state = 'pending' AND r.earlier = 'replace' AND r.due_at <= ` + sqliteNow + `
	AND (r.start_by IS NULL OR r.start_by > ` + sqliteNow + `) AND e.cancel_reason = '' AND NOT ` + sqlitePaused + `
	AND ` + sqliteYields + `
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
	exit_code = x.value->>'exit_code', signal = x.value->>'signal', renewals = x.value->>'renewals',
	least_left_ms = x.value->>'least_left_ms', finished_at = ` + sqliteNow + `
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
INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, running, labels, joined_at, seen_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ` + sqliteNow + `, ` + sqliteNow + `)`,
	beat: `
UPDATE replicas SET seen_at = ` + sqliteNow + `, running = ?, draining = ?, definitions_hash = ?
WHERE boot_nonce = ? AND left_at IS NULL AND seen_at > ` + sqliteNow + ` - ?
	AND id = (SELECT max(id) FROM replicas WHERE boot_nonce = ?)`,
	leave:    `UPDATE replicas SET left_at = ` + sqliteNow + `, seen_at = ` + sqliteNow + ` WHERE boot_nonce = ? AND left_at IS NULL`,
	replicas: sqliteReplicas,
	askDrain: `UPDATE replicas SET drain_asked_at = ?, drain_asked_by = ?, drain_reason = ? WHERE boot_nonce = ?`,
	drainOf: `
SELECT drain_asked_at, drain_asked_by, drain_reason FROM replicas
WHERE boot_nonce = ? AND drain_asked_at IS NOT NULL ORDER BY id DESC LIMIT 1`,
	lifetimes: `
SELECT joined_at, coalesce(left_at, seen_at) AS until FROM replicas
WHERE joined_at <= ?0 AND coalesce(left_at, seen_at) >= coalesce(
	(SELECT max(coalesce(left_at, seen_at)) FROM replicas WHERE coalesce(left_at, seen_at) < ?1), ?1) ORDER BY joined_at LIMIT 10000`,

	// The transaction is the only one that writes: there is nothing to hold.
	pausesBetween: sqlitePausesBetween, openPauses: openPauses,
	addPause: addPause, changePause: changePause, closePause: closePause, auditPause: sqliteAuditPause,
	isJob: isJob, jobNames: jobNames,

	addChunks: sqliteAddChunks, dropChunks: sqliteDropChunks, clearChunks: clearChunks,

	overdue: `
SELECT job, coalesce(success, first) AS since, success IS NOT NULL AS succeeded
FROM (SELECT x.value->>'job' AS job, x.value->>'max_age' AS max_age,
	(SELECT r.finished_at FROM job_runs AS r WHERE r.job = x.value->>'job' AND r.outcome = 'succeeded'
		ORDER BY r.scheduled_at DESC, r.id DESC LIMIT 1) AS success,
	(SELECT r.created_at FROM job_runs AS r WHERE r.job = x.value->>'job' ORDER BY r.scheduled_at, r.id LIMIT 1) AS first
	FROM json_each(?) AS x) AS o
WHERE coalesce(success, first) <= ` + sqliteNow + ` - max_age
	AND NOT EXISTS (SELECT 1 FROM audit_log AS a WHERE a.action = 'job.overdue' AND a.job = o.job AND a.at > coalesce(success, first))
ORDER BY job`,

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
