package jobs

const postgresNow = `clock_timestamp()`

// InsertRunsPostgres inserts the rows of a JSON array (EncodeRuns) in the order of their keys, so that two replicas
// that plan the same instants cannot deadlock, and returns those that were not there yet. Losing that race is normal.
const InsertRunsPostgres = `
INSERT INTO job_runs AS r (job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by, resource,
	overlap, on_lost, max_attempts, retry, earlier, once_per, limits,
	follow, period, follows, only_on, params, notify, planned_by, state, outcome, reason, detail, created_at, finished_at)
SELECT job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by, resource,
	overlap, on_lost, max_attempts, retry, earlier, once_per, limits,
	follow, period, follows, only_on, params, notify, planned_by, state, outcome, reason, detail, clock_timestamp(),
	CASE WHEN state = 'finished' THEN clock_timestamp() END
FROM jsonb_to_recordset(?::jsonb) AS x (job text, occurrence text, attempt integer, trigger text, requested_by text,
	scheduled_at timestamptz, due_at timestamptz, start_by timestamptz, resource text, overlap text, on_lost text,
	max_attempts integer, retry jsonb, earlier text, once_per text, limits jsonb,
	follow boolean, period text, follows jsonb, only_on jsonb, params jsonb, notify boolean,
	planned_by text, state text, outcome text, reason text, detail jsonb)
ORDER BY job COLLATE "C", occurrence COLLATE "C", attempt
ON CONFLICT (job, occurrence, attempt) DO NOTHING
RETURNING ` + RunColumns

//nolint:gochecknoglobals // a table of statements
var postgresLedger = ledgerQueries{
	// The CASE hides from the planner what it cannot estimate: it would expect next to nothing, and sort the whole table
	// rather than read the newest runs of an index until there are enough.
	list: `
WITH f AS MATERIALIZED (SELECT * FROM jsonb_to_record(?0::jsonb) AS x (` + listColumns("text[]") + `))
SELECT ` + RunColumns + `
FROM job_runs AS r
WHERE r.scheduled_at BETWEEN ?2::timestamptz AND ?3::timestamptz AND (r.scheduled_at < ?4::timestamptz OR r.id < ?5)
	AND (?1 = '' OR r.job = ?1)
	AND CASE WHEN true` + listConditions(postgresListed) + `
	AND ((SELECT words FROM f) IS NULL
		OR NOT EXISTS (SELECT 1 FROM unnest((SELECT words FROM f)) AS w WHERE strpos(r.job, w) = 0))
	AND ((SELECT not_words FROM f) IS NULL
		OR NOT EXISTS (SELECT 1 FROM unnest((SELECT not_words FROM f)) AS w WHERE strpos(r.job, w) > 0))
	THEN true END
ORDER BY r.scheduled_at DESC, r.id DESC LIMIT ?6`,
	get:    `SELECT ` + RunColumns + ` FROM job_runs AS r WHERE r.id = ?`,
	output: `SELECT head, tail, total_bytes FROM run_outputs WHERE run_id = ?`,
}

// postgresListed says that a column's value is, or is not, among what the filter f has for it.
func postgresListed(name, value, kind string) string {
	exact, prefix := "(SELECT "+name+"_"+kind+" FROM f)", "(SELECT "+name+"_"+prefixOf(kind)+" FROM f)"
	found := "(" + value + " = ANY(" + exact + "::text[]) OR EXISTS (SELECT 1 FROM unnest(" + prefix + ") AS p WHERE starts_with(" +
		value + ", p)))"
	if kind == listNot {
		found = "NOT " + found
	}
	return "(" + exact + " IS NULL OR " + found + ")"
}
