package demo

// The statements of the seed. They write what the daemon's own statements would have written over a month.
const (
	sqliteClock = `SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now`

	// json_each makes the text of a row again each time that the row is asked for something, and this asks 33 times.
	sqliteSeedRuns = `
WITH given AS MATERIALIZED (SELECT jsonb(value) AS v FROM json_each(?))
INSERT INTO job_runs (id, job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by, resource,
	overlap, on_lost, max_attempts, retry, earlier, once_per, limits, follow, period, follows, only_on, params, notify,
	state, outcome, reason, detail, replica, owner, fencing_token, created_at, started_at, finished_at, exit_code,
	cancel_reason, cancel_detail)
SELECT v->>'id', v->>'$.new.job', v->>'$.new.occurrence', v->>'$.new.attempt', v->>'$.new.trigger',
	v->>'$.new.requested_by', v->>'$.new.scheduled_at', v->>'$.new.due_at', v->>'$.new.start_by',
	v->>'$.new.resource', v->>'$.new.overlap', v->>'$.new.on_lost', v->>'$.new.max_attempts',
	v->'$.new.retry', v->>'$.new.earlier', v->>'$.new.once_per', v->'$.new.limits', v->>'$.new.follow',
	v->>'$.new.period', v->'$.new.follows', v->'$.new.only_on', v->'$.new.params', v->>'$.new.notify',
	v->>'$.new.state', v->>'$.new.outcome', v->>'$.new.reason', v->'$.new.detail',
	v->>'replica', v->>'owner', v->>'token', v->>'created', v->>'started', v->>'finished',
	v->>'exit_code', v->>'cancel_reason', v->'cancel_detail'
FROM given`

	sqliteSeedOutputs = `
INSERT INTO run_outputs (run_id, head, tail, total_bytes)
SELECT value->>'id', CAST(value->>'text' AS BLOB), x'', octet_length(value->>'text') FROM json_each(?)`

	sqliteSeedLocks = `
INSERT INTO distributed_locks (resource, owner, fencing_token, acquired_at, renewed_at, expires_at, released_at)
SELECT value->>'resource', value->>'owner', value->>'token', value->>'at', value->>'released', value->>'released', value->>'released'
FROM json_each(?)`

	sqliteSeedTokens = `UPDATE fencing_tokens SET last = (SELECT max(fencing_token) FROM job_runs) WHERE id = 1`

	sqliteSeedReplicas = `
INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, joined_at, seen_at, left_at)
SELECT value->>'name', value->>'nonce', value->>'host', value->>'pid', value->>'version', value->>'hash', value->>'capacity',
	value->>'from', value->>'until', value->>'left'
FROM json_each(?)`

	sqliteSeedAudit = `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason, detail)
SELECT value->>'at', value->>'action', 'success', value->>'actor_type', value->>'actor', value->>'job', value->>'run_id',
	value->>'resource', value->>'owner', value->>'token', value->>'replica', value->>'reason', value->'detail'
FROM json_each(?) ORDER BY value->>'at'`

	sqliteSeedPause = `
INSERT INTO job_pauses (job, reason, paused_by, paused_at, until_at, resumed_by, resumed_at)
SELECT p->>'job', p->>'reason', p->>'by', p->>'from', NULL, p->>'by', p->>'until' FROM (SELECT ? AS p)`
)
