package scheduler

import "github.com/cronlatch/cronlatch/jobs"

// postgresEarlier selects the unfinished runs of r's job that come before r.
const postgresEarlier = `FROM job_runs AS e
	WHERE e.job = r.job AND e.state <> 'finished' AND (e.scheduled_at, e.id) < (r.scheduled_at, r.id)`

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
		WHERE l.resource = r.resource AND l.fencing_token = r.fencing_token AND l.expires_at > clock_timestamp())) AS lost`,

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
SELECT r.id,
	(SELECT e.id ` + postgresEarlier + ` ORDER BY e.scheduled_at, e.id LIMIT 1) AS earlier,
	l.acquired_at AS held_since, l.expires_at AS held_until, l.metadata AS held_metadata,
	coalesce(r.start_by <= statement_timestamp(), false) AS expired
FROM job_runs AS r
LEFT JOIN distributed_locks AS l ON l.resource = r.resource AND l.expires_at > clock_timestamp()
WHERE r.state = 'pending' AND r.due_at <= statement_timestamp() AND (
	r.start_by <= statement_timestamp()
	OR (r.overlap = 'skip' AND (SELECT 1 ` + postgresEarlier + ` LIMIT 1) IS NOT NULL)
	OR (r.overlap = 'queue' AND (SELECT 1 ` + postgresEarlier + ` LIMIT 1 OFFSET 1) IS NOT NULL))
ORDER BY r.id LIMIT 500
FOR UPDATE OF r SKIP LOCKED`,

	// The sub-selects have a LIMIT, and the list of names an IS NOT TRUE, so that the planner cannot turn them into joins
	// over everything: the rows are read in the order of their index until there are enough.
	candidates: `
SELECT ` + jobs.RunColumns + `
FROM job_runs AS r
WHERE r.state = 'pending' AND r.due_at <= statement_timestamp()
	AND (r.start_by IS NULL OR r.start_by > statement_timestamp())
	AND (r.job IN (SELECT jsonb_array_elements_text(?::jsonb))) IS NOT TRUE
	AND (SELECT 1 ` + postgresEarlier + ` LIMIT 1) IS NULL
	AND (SELECT 1 FROM distributed_locks AS l WHERE l.resource = r.resource AND l.expires_at > clock_timestamp() LIMIT 1) IS NULL
ORDER BY r.due_at, r.id LIMIT ?
FOR UPDATE OF r SKIP LOCKED`,

	markRunning: `
UPDATE job_runs AS r
SET state = 'running', replica = x.replica, owner = x.owner, fencing_token = x.fencing_token, started_at = clock_timestamp()
FROM jsonb_to_recordset(?::jsonb) AS x (id bigint, replica text, owner text, fencing_token bigint)
WHERE r.id = x.id AND r.state = 'pending'
RETURNING ` + jobs.RunColumns,

	endRuns: `
UPDATE job_runs AS r
SET state = 'finished', outcome = x.outcome, reason = x.reason, detail = x.detail, exit_code = x.exit_code,
	signal = x.signal, finished_at = clock_timestamp()
FROM jsonb_to_recordset(?::jsonb) AS x (id bigint, from_state text, fencing_token bigint, outcome text, reason text,
	detail jsonb, exit_code integer, signal text)
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
INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, running, joined_at, seen_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, clock_timestamp(), clock_timestamp())`,
	beat: `
UPDATE replicas SET seen_at = clock_timestamp(), running = ?, draining = ?, definitions_hash = ?
WHERE boot_nonce = ? AND left_at IS NULL AND seen_at > clock_timestamp() - ? * interval '1 millisecond'
	AND id = (SELECT max(id) FROM replicas WHERE boot_nonce = ?)`,
	leave: `UPDATE replicas SET left_at = clock_timestamp(), seen_at = clock_timestamp() WHERE boot_nonce = ? AND left_at IS NULL`,
	lifetimes: `
SELECT joined_at, coalesce(left_at, seen_at) AS until FROM replicas
WHERE joined_at <= ? AND coalesce(left_at, seen_at) >= ? ORDER BY joined_at LIMIT 10000`,

	audit: `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason, detail)
SELECT clock_timestamp(), action, outcome, 'replica', replica, job, run_id, resource, owner, fencing_token, replica, reason, detail
FROM jsonb_to_recordset(?::jsonb) AS x (action text, outcome text, job text, run_id bigint, resource text, owner text,
	fencing_token bigint, replica text, reason text, detail jsonb)`,
}
