package scheduler

import "github.com/cronlatch/cronlatch/jobs"

// postgresEarlier selects the unfinished runs of r's job that come before r.
const postgresEarlier = `FROM job_runs AS e
	WHERE e.job = r.job AND e.state <> 'finished' AND (e.scheduled_at, e.id) < (r.scheduled_at, r.id)
	AND ` + postgresMoves + `
	AND ` + postgresYields

// postgresBlocked selects something when r has to wait for an earlier run of its job.
const postgresBlocked = `SELECT 1 ` + postgresEarlier + ` AND r.earlier <> 'allow' LIMIT 1`

// postgresDone selects the marker that r is once_per for. A manual trigger is no occurrence.
const postgresDone = `FROM resource_markers AS m
	WHERE r.once_per = 'resource' AND left(r.occurrence, 2) <> 'm:' AND m.job = r.job AND m.resource = r.resource`

// postgresEnded selects runs of x's job that have ended, each with its last attempt.
const postgresEnded = `FROM job_runs AS f
	WHERE f.job = x.job AND f.state = 'finished' AND NOT EXISTS (
		SELECT 1 FROM job_runs AS n WHERE n.job = f.job AND n.occurrence = f.occurrence AND n.attempt > f.attempt)`

// postgresUsed counts the running runs by their limited tags, once for a whole statement.
const postgresUsed = `used AS MATERIALIZED (
	SELECT t.tag, count(*) AS n FROM job_runs AS q, jsonb_object_keys(q.limits) AS t (tag)
	WHERE q.state = 'running' AND q.limits <> '{}' GROUP BY t.tag)`

// postgresFull selects a tag of r whose limit is reached.
const postgresFull = `SELECT used.tag FROM used
	WHERE r.limits <> '{}' AND used.n >= (r.limits->>used.tag)::bigint ORDER BY used.tag LIMIT 1`

// postgresRunning selects a running run of r's job, earlier or not: a manual run may have gone before one that was paused.
const postgresRunning = `SELECT 1 FROM job_runs AS q WHERE q.job = r.job AND q.state = 'running' LIMIT 1`

// Due is compared with statement_timestamp(): it is never later than the clock (P7) and, unlike clock_timestamp(), the
// planner may use it with an index. Expiry is compared with clock_timestamp(), which goes on while a statement waits.
//
//nolint:gochecknoglobals // a table of statements
var postgresQueries = queries{
	now: `SELECT clock_timestamp() AS now`,

	look: `
SELECT clock_timestamp() AS now,
	EXISTS (SELECT 1 FROM job_runs WHERE state = 'pending' AND due_at <= statement_timestamp()) AS due,
	EXISTS (SELECT 1 FROM job_runs AS r WHERE r.state = 'running' AND NOT EXISTS (
		SELECT 1 FROM distributed_locks AS l
		WHERE l.resource = r.resource AND l.fencing_token = r.fencing_token AND l.expires_at > clock_timestamp())) AS lost,
	EXISTS (SELECT 1 FROM job_runs WHERE follow AND state = 'finished') AS follow,
	EXISTS (SELECT 1 FROM job_runs WHERE notify AND state = 'finished') AS notify,
	EXISTS (SELECT 1 FROM replicas WHERE boot_nonce = ? AND drain_asked_at IS NOT NULL) AS drain`,

	addPositions: `
INSERT INTO plan_positions (job, schedule_hash, position)
SELECT job, schedule_hash, clock_timestamp()
FROM jsonb_to_recordset(?::jsonb) AS x (job text, schedule_hash text)
ORDER BY job COLLATE "C", schedule_hash COLLATE "C"
ON CONFLICT (job, schedule_hash) DO NOTHING`,

	readPositions: `
SELECT p.job, p.schedule_hash, p.position
FROM plan_positions AS p JOIN jsonb_to_recordset(?::jsonb) AS x (job text, schedule_hash text)
	ON p.job = x.job AND p.schedule_hash = x.schedule_hash`,

	lockPositions: `
SELECT p.job, p.schedule_hash, p.position
FROM plan_positions AS p JOIN jsonb_to_recordset(?::jsonb) AS x (job text, schedule_hash text)
	ON p.job = x.job AND p.schedule_hash = x.schedule_hash
ORDER BY p.job, p.schedule_hash
FOR UPDATE OF p SKIP LOCKED`,

	movePositions: `
UPDATE plan_positions AS p SET position = x.position
FROM jsonb_to_recordset(?::jsonb) AS x (job text, schedule_hash text, position timestamptz)
WHERE p.job = x.job AND p.schedule_hash = x.schedule_hash AND p.position < x.position`,

	insertRuns: jobs.InsertRunsPostgres,

	ended: `
WITH ` + postgresUsed + `
SELECT r.id, r.job, r.occurrence, r.start_by, r.only_on,
	(SELECT e.id ` + postgresEarlier + ` AND r.earlier <> 'allow' ORDER BY e.scheduled_at, e.id LIMIT 1) AS earlier,
	l.acquired_at AS held_since, l.expires_at AS held_until, l.metadata AS held_metadata,
	(SELECT m.run_id ` + postgresDone + `) AS done_by,
	(` + postgresFull + `) AS full_tag, r.limits,
	coalesce(r.start_by <= statement_timestamp(), false) AS expired
FROM job_runs AS r
LEFT JOIN distributed_locks AS l ON l.resource = r.resource AND l.expires_at > clock_timestamp()
WHERE r.state = 'pending' AND r.due_at <= statement_timestamp() AND (
	r.start_by <= statement_timestamp()
	OR (r.once_per <> '' AND EXISTS (SELECT 1 ` + postgresDone + `))
	OR (r.overlap = 'skip' AND (SELECT 1 ` + postgresEarlier + ` LIMIT 1) IS NOT NULL)
	OR (r.overlap = 'queue' AND (SELECT 1 ` + postgresEarlier + ` LIMIT 1 OFFSET 1) IS NOT NULL))
ORDER BY r.id LIMIT 500
FOR UPDATE OF r SKIP LOCKED`,

	// The sub-selects have a LIMIT, and the list of names an IS NOT TRUE, so that the planner cannot turn them into joins
	// over everything: the rows are read in the order of their index until there are enough.
	candidates: `
WITH ` + postgresUsed + `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.state = 'pending' AND r.due_at <= statement_timestamp()
	AND (r.start_by IS NULL OR r.start_by > statement_timestamp())
	AND (r.job IN (SELECT jsonb_array_elements_text(?::jsonb))) IS NOT TRUE
	AND NOT ` + postgresPaused + `
	AND (r.only_on = '{}' OR (SELECT 1 FROM jsonb_each(r.only_on) AS o
		WHERE (o.value @> to_jsonb(?::jsonb->>o.key)) IS NOT TRUE LIMIT 1) IS NULL)
	AND (` + postgresBlocked + `) IS NULL
	AND (r.earlier = 'allow' OR (` + postgresRunning + `) IS NULL)
	AND (r.once_per = '' OR (SELECT 1 ` + postgresDone + ` LIMIT 1) IS NULL)
	AND (r.limits = '{}' OR (` + postgresFull + `) IS NULL)
	AND (SELECT 1 FROM distributed_locks AS l WHERE l.resource = r.resource AND l.expires_at > clock_timestamp() LIMIT 1) IS NULL
ORDER BY r.due_at, r.id LIMIT ?
FOR UPDATE OF r SKIP LOCKED`,

	addTags: `
INSERT INTO tag_counters (tag) SELECT tag FROM jsonb_array_elements_text(?::jsonb) AS t (tag)
ORDER BY tag COLLATE "C" ON CONFLICT (tag) DO NOTHING`,
	lockTags: `
SELECT tag FROM tag_counters WHERE tag IN (SELECT jsonb_array_elements_text(?::jsonb)) ORDER BY tag FOR UPDATE`,
	countTags: `
SELECT t.tag, count(*) AS n FROM job_runs AS q, jsonb_object_keys(q.limits) AS t (tag)
WHERE q.state = 'running' AND q.limits <> '{}' GROUP BY t.tag`,

	done: `
SELECT r.id FROM job_runs AS r
WHERE r.id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint) AND EXISTS (SELECT 1 ` + postgresDone + `)`,
	addMarker: `
INSERT INTO resource_markers (job, resource, run_id, at)
SELECT job, resource, id, clock_timestamp() FROM job_runs WHERE id = ?
ON CONFLICT (job, resource) DO NOTHING`,

	followed: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.follow AND r.state = 'finished' AND (r.job IN (SELECT jsonb_array_elements_text(?::jsonb))
	OR r.finished_at < statement_timestamp() - interval '1 day')
ORDER BY r.id LIMIT ?
FOR UPDATE OF r SKIP LOCKED`,
	repeated: `
SELECT r.id FROM job_runs AS r
WHERE r.id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint) AND EXISTS (
	SELECT 1 FROM job_runs AS n WHERE n.job = r.job AND n.occurrence = r.occurrence AND n.attempt > r.attempt)`,
	upstream: `
WITH x AS MATERIALIZED (
	SELECT (SELECT f.id ` + postgresEnded + ` AND f.occurrence = x.occurrence LIMIT 1) AS id
	FROM jsonb_to_recordset(?::jsonb) AS x (job text, occurrence text, period text) WHERE x.period = ''
	UNION ALL
	SELECT (SELECT f.id ` + postgresEnded + ` AND f.period = x.period AND f.period <> '' AND left(f.occurrence, 2) <> 'm:'
		ORDER BY f.finished_at, f.id LIMIT 1)
	FROM jsonb_to_recordset(?::jsonb) AS x (job text, occurrence text, period text) WHERE x.period <> '')
SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.id IN (SELECT id FROM x)`,
	unmarkFollow: `UPDATE job_runs SET follow = false WHERE id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint)`,

	replaced: `
SELECT e.id, e.state, r.id AS replaced_by
FROM job_runs AS r JOIN job_runs AS e
	ON e.job = r.job AND e.state IN ('pending', 'running') AND (e.scheduled_at, e.id) < (r.scheduled_at, r.id)
WHERE r.state = 'pending' AND r.earlier = 'replace' AND r.due_at <= statement_timestamp()
	AND (r.start_by IS NULL OR r.start_by > statement_timestamp()) AND e.cancel_reason = '' AND NOT ` + postgresPaused + `
	AND ` + postgresYields + `
ORDER BY e.id, r.id LIMIT 500
FOR UPDATE OF e SKIP LOCKED`,
	askToEnd: `
UPDATE job_runs AS r SET cancel_reason = x.reason, cancel_detail = x.detail
FROM jsonb_to_recordset(?::jsonb) AS x (id bigint, reason text, detail jsonb)
WHERE r.id = x.id AND r.state = 'running' AND r.cancel_reason = ''`,
	cancelling: `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.state = 'running' AND r.cancel_reason <> '' ORDER BY r.id`,

	markRunning: `
UPDATE job_runs AS r
SET state = 'running', replica = x.replica, owner = x.owner, fencing_token = x.fencing_token, started_at = clock_timestamp()
FROM jsonb_to_recordset(?::jsonb) AS x (id bigint, replica text, owner text, fencing_token bigint)
WHERE r.id = x.id AND r.state = 'pending'
RETURNING ` + jobs.RunColumns,

	endRuns: `
UPDATE job_runs AS r
SET state = 'finished', outcome = x.outcome, reason = x.reason, detail = x.detail, exit_code = x.exit_code,
	signal = x.signal, renewals = x.renewals, least_left_ms = x.least_left_ms, finished_at = clock_timestamp()
FROM jsonb_to_recordset(?::jsonb) AS x (id bigint, from_state text, fencing_token bigint, outcome text, reason text,
	detail jsonb, exit_code integer, signal text, renewals integer, least_left_ms bigint)
WHERE r.id = x.id AND r.state = x.from_state AND (x.fencing_token = 0 OR r.fencing_token = x.fencing_token)
RETURNING ` + jobs.RunColumns,

	lost: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.state = 'running' AND NOT EXISTS (
	SELECT 1 FROM distributed_locks AS l
	WHERE l.resource = r.resource AND l.fencing_token = r.fencing_token AND l.expires_at > clock_timestamp())
ORDER BY r.id LIMIT 100
FOR UPDATE OF r SKIP LOCKED`,

	lateOutcome: `UPDATE job_runs SET late_outcome = ? WHERE id = ? AND late_outcome IS NULL`,
	byID:        `SELECT ` + jobs.RunColumns + ` FROM job_runs AS r WHERE r.id = ?`,
	byOwner: `
SELECT ` + jobs.RunColumns + ` FROM job_runs AS r
WHERE r.state = 'running' AND r.owner IN (SELECT jsonb_array_elements_text(?::jsonb))`,

	storeOutput: `
INSERT INTO run_outputs (run_id, head, tail, total_bytes) VALUES (?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING`,

	join: `
INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, running, labels, joined_at, seen_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb, clock_timestamp(), clock_timestamp())`,
	beat: `
UPDATE replicas SET seen_at = clock_timestamp(), running = ?, draining = ?, definitions_hash = ?
WHERE boot_nonce = ? AND left_at IS NULL AND seen_at > clock_timestamp() - ? * interval '1 millisecond'
	AND id = (SELECT max(id) FROM replicas WHERE boot_nonce = ?)`,
	leave:    `UPDATE replicas SET left_at = clock_timestamp(), seen_at = clock_timestamp() WHERE boot_nonce = ? AND left_at IS NULL`,
	replicas: postgresReplicas,
	askDrain: `UPDATE replicas SET drain_asked_at = ?, drain_asked_by = ?, drain_reason = ? WHERE boot_nonce = ?`,
	drainOf: `
SELECT drain_asked_at, drain_asked_by, drain_reason FROM replicas
WHERE boot_nonce = ? AND drain_asked_at IS NOT NULL ORDER BY id DESC LIMIT 1`,
	lifetimes: `
SELECT joined_at, coalesce(left_at, seen_at) AS until FROM replicas
WHERE joined_at <= ?0 AND coalesce(left_at, seen_at) >= coalesce(
	(SELECT max(coalesce(left_at, seen_at)) FROM replicas WHERE coalesce(left_at, seen_at) < ?1), ?1) ORDER BY joined_at LIMIT 10000`,

	holdPauses: postgresHoldPauses, lockPauses: postgresLockPauses, pausesBetween: postgresPausesBetween, openPauses: openPauses,
	addPause: addPause, changePause: changePause, closePause: closePause, auditPause: postgresAuditPause,
	isJob: isJob, jobNames: jobNames,

	addChunks: postgresAddChunks, clearChunks: clearChunks,

	lockOverdue: `SELECT pg_advisory_xact_lock(6043117720915386412)`,
	overdue: `
SELECT x.job, coalesce(s.finished_at, f.created_at) AS since, s.finished_at IS NOT NULL AS succeeded
FROM jsonb_to_recordset(?::jsonb) AS x (job text, max_age bigint)
LEFT JOIN LATERAL (SELECT r.finished_at FROM job_runs AS r WHERE r.job = x.job AND r.outcome = 'succeeded'
	ORDER BY r.scheduled_at DESC, r.id DESC LIMIT 1) AS s ON true
LEFT JOIN LATERAL (SELECT r.created_at FROM job_runs AS r WHERE r.job = x.job ORDER BY r.scheduled_at, r.id LIMIT 1) AS f ON true
WHERE coalesce(s.finished_at, f.created_at) <= clock_timestamp() - x.max_age * interval '1 millisecond'
	AND NOT EXISTS (SELECT 1 FROM audit_log AS a WHERE a.action = 'job.overdue' AND a.job = x.job
		AND a.at > coalesce(s.finished_at, f.created_at))
ORDER BY x.job`,

	audit: `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason, detail)
SELECT clock_timestamp(), action, outcome, 'replica', replica, job, run_id, resource, owner, fencing_token, replica, reason, detail
FROM jsonb_to_recordset(?::jsonb) AS x (action text, outcome text, job text, run_id bigint, resource text, owner text,
	fencing_token bigint, replica text, reason text, detail jsonb)`,
}
