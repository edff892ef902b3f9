package jobs

// SQLite evaluates 'now' once per statement.
const sqliteNow = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`

// InsertRunsSQLite inserts the rows of a JSON array (EncodeRuns) and returns those that were not there yet.
const InsertRunsSQLite = `
INSERT INTO job_runs AS r (job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by, resource,
	overlap, on_lost, max_attempts, retry, earlier, once_per, limits,
	follow, period, follows, only_on, params, notify, planned_by, state, outcome, reason, detail, created_at, finished_at)
SELECT value->>'job', value->>'occurrence', value->>'attempt', value->>'trigger', value->>'requested_by',
	value->>'scheduled_at', value->>'due_at', value->>'start_by', value->>'resource', value->>'overlap',
	value->>'on_lost', value->>'max_attempts', value->'retry', value->>'earlier', value->>'once_per', value->'limits',
	value->>'follow', value->>'period', value->'follows', value->'only_on',
	value->'params', value->>'notify', value->>'planned_by',
	value->>'state', value->>'outcome', value->>'reason', value->'detail',
	` + sqliteNow + `, CASE WHEN value->>'state' = 'finished' THEN ` + sqliteNow + ` END
FROM json_each(?)
WHERE true
ORDER BY value->>'job', value->>'occurrence', value->>'attempt'
ON CONFLICT (job, occurrence, attempt) DO NOTHING
RETURNING id, job, occurrence, attempt, trigger, requested_by, scheduled_at, due_at, start_by, resource, overlap, on_lost,
	max_attempts, state, outcome, reason, detail, replica, owner, fencing_token, created_at, started_at, finished_at,
	exit_code, signal, late_outcome, retry, earlier, once_per, limits, cancel_reason, cancel_detail,
	follow, period, follows, only_on, params, notify`

//nolint:gochecknoglobals // a table of statements
var sqliteLedger = ledgerQueries{
	// Two searches with one result: of the index of a job when it is the only one, else of all runs. The one that is not
	// meant has a constant that is false, and reads nothing.
	list: `
WITH f AS MATERIALIZED (SELECT ?0 AS f)
SELECT * FROM (SELECT ` + RunColumns + ` FROM job_runs AS r INDEXED BY job_runs_history
	WHERE ?1 <> '' AND r.job = ?1 AND ` + sqliteListed + `
	ORDER BY r.scheduled_at DESC, r.id DESC LIMIT ?6)
UNION ALL
SELECT * FROM (SELECT ` + RunColumns + ` FROM job_runs AS r INDEXED BY job_runs_recent
	WHERE ?1 = '' AND ` + sqliteListed + `
	ORDER BY r.scheduled_at DESC, r.id DESC LIMIT ?6)
ORDER BY scheduled_at DESC, id DESC`,
	get:    `SELECT ` + RunColumns + ` FROM job_runs AS r WHERE r.id = ?`,
	output: `SELECT head, tail, total_bytes FROM run_outputs WHERE run_id = ?`,
}

//nolint:gochecknoglobals // a part of a statement
var sqliteListed = `r.scheduled_at BETWEEN ?2 AND ?3 AND (r.scheduled_at < ?4 OR r.id < ?5)` + listConditions(sqliteListedIn) + `
	AND ((SELECT f->'words' FROM f) IS NULL
		OR NOT EXISTS (SELECT 1 FROM json_each((SELECT f->'words' FROM f)) AS w WHERE instr(r.job, w.value) = 0))
	AND ((SELECT f->'not_words' FROM f) IS NULL
		OR NOT EXISTS (SELECT 1 FROM json_each((SELECT f->'not_words' FROM f)) AS w WHERE instr(r.job, w.value) > 0))`

// sqliteListedIn says that a column's value is, or is not, among what the filter f has for it.
func sqliteListedIn(name, value, kind string) string {
	exact, prefix := "(SELECT f->'"+name+"_"+kind+"' FROM f)", "(SELECT f->'"+name+"_"+prefixOf(kind)+"' FROM f)"
	found := "(" + value + " IN (SELECT value FROM json_each(" + exact + ")) OR EXISTS (SELECT 1 FROM json_each(" + prefix +
		") AS p WHERE substr(" + value + ", 1, length(p.value)) = p.value))"
	if kind == listNot {
		found = "NOT " + found
	}
	return "(" + exact + " IS NULL OR " + found + ")"
}
