package scheduler

//nolint:gochecknoglobals // a table of statements
var sqliteExplain = explainQueries{
	byIDs: explainRuns + `WHERE r.id IN (SELECT value FROM json_each(?)) ORDER BY r.id`,
	audit: explainAudit + `WHERE at >= ? AND run_id IN (SELECT value FROM json_each(?)) ORDER BY at, id LIMIT 100`,
	kept:  explainKept + `WHERE id IN (SELECT value FROM json_each(?))`,
}
