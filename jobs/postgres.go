package jobs

const postgresNow = `clock_timestamp()`

// InsertRunsPostgres inserts the rows of a JSON array (EncodeRuns) in the order of their keys, so that two replicas
// that plan the same instants cannot deadlock, and returns those that were not there yet. Losing that race is normal.
const InsertRunsPostgres = `
INSERT INTO job_runs AS r (job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by, resource,
	overlap, on_lost, max_attempts, retry, earlier, once_per, limits,
	follow, period, follows, only_on, state, outcome, reason, detail, created_at, finished_at)
SELECT job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by, resource,
	overlap, on_lost, max_attempts, retry, earlier, once_per, limits,
	follow, period, follows, only_on, state, outcome, reason, detail, clock_timestamp(),
	CASE WHEN state = 'finished' THEN clock_timestamp() END
FROM jsonb_to_recordset(?::jsonb) AS x (job text, occurrence text, attempt integer, trigger text, requested_by text,
	scheduled_at timestamptz, due_at timestamptz, start_by timestamptz, resource text, overlap text, on_lost text,
	max_attempts integer, retry jsonb, earlier text, once_per text, limits jsonb,
	follow boolean, period text, follows jsonb, only_on jsonb, state text, outcome text, reason text, detail jsonb)
ORDER BY job COLLATE "C", occurrence COLLATE "C", attempt
ON CONFLICT (job, occurrence, attempt) DO NOTHING
RETURNING ` + RunColumns

//nolint:gochecknoglobals // a table of statements
var postgresLedger = ledgerQueries{
	list: `
SELECT ` + RunColumns + `
FROM job_runs AS r, jsonb_to_record(?::jsonb) AS f (job text, state text, outcome text, since timestamptz)
WHERE (f.job = '' OR r.job = f.job) AND (f.state = '' OR r.state = f.state)
	AND (f.outcome = '' OR r.outcome = f.outcome) AND (f.since IS NULL OR r.scheduled_at >= f.since)
ORDER BY r.scheduled_at DESC, r.id DESC LIMIT ?`,
	get:     `SELECT ` + RunColumns + ` FROM job_runs AS r WHERE r.id = ?`,
	trigger: InsertRunsPostgres,
	byKey:   `SELECT ` + RunColumns + ` FROM job_runs AS r WHERE r.job = ? AND r.occurrence = ? AND r.attempt = 1`,
	output:  `SELECT head, tail, total_bytes FROM run_outputs WHERE run_id = ?`,
}
