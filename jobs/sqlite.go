package jobs

// SQLite evaluates 'now' once per statement.
const sqliteNow = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`

// InsertRunsSQLite inserts the rows of a JSON array (EncodeRuns) and returns those that were not there yet.
const InsertRunsSQLite = `
INSERT INTO job_runs AS r (job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by, resource,
	overlap, on_lost, max_attempts, retry, earlier, once_per, limits,
	follow, period, follows, only_on, state, outcome, reason, detail, created_at, finished_at)
SELECT value->>'job', value->>'occurrence', value->>'attempt', value->>'trigger', value->>'requested_by',
	value->>'scheduled_at', value->>'due_at', value->>'start_by', value->>'resource', value->>'overlap',
	value->>'on_lost', value->>'max_attempts', value->'retry', value->>'earlier', value->>'once_per', value->'limits',
	value->>'follow', value->>'period', value->'follows', value->'only_on',
	value->>'state', value->>'outcome', value->>'reason', value->'detail',
	` + sqliteNow + `, CASE WHEN value->>'state' = 'finished' THEN ` + sqliteNow + ` END
FROM json_each(?)
WHERE true
ORDER BY value->>'job', value->>'occurrence', value->>'attempt'
ON CONFLICT (job, occurrence, attempt) DO NOTHING
RETURNING id, job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by, resource, overlap, on_lost,
	max_attempts, state, outcome, reason, detail, replica, owner, fencing_token, created_at, started_at, finished_at,
	exit_code, signal, late_outcome, retry, earlier, once_per, limits, cancel_reason, cancel_detail,
	follow, period, follows, only_on`

//nolint:gochecknoglobals // a table of statements
var sqliteLedger = ledgerQueries{
	list: `
SELECT ` + RunColumns + `
FROM job_runs AS r, (SELECT ? AS filter) AS f
WHERE (filter->>'job' = '' OR r.job = filter->>'job') AND (filter->>'state' = '' OR r.state = filter->>'state')
	AND (filter->>'outcome' = '' OR r.outcome = filter->>'outcome')
	AND (filter->>'since' IS NULL OR r.scheduled_at >= filter->>'since')
ORDER BY r.scheduled_at DESC, r.id DESC LIMIT ?`,
	get:     `SELECT ` + RunColumns + ` FROM job_runs AS r WHERE r.id = ?`,
	trigger: InsertRunsSQLite,
	byKey:   `SELECT ` + RunColumns + ` FROM job_runs AS r WHERE r.job = ? AND r.occurrence = ? AND r.attempt = 1`,
	output:  `SELECT head, tail, total_bytes FROM run_outputs WHERE run_id = ?`,
}
