package scheduler

//nolint:gochecknoglobals // a table of statements
var postgresExplain = explainQueries{
	byIDs: explainRuns + `WHERE r.id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint) ORDER BY r.id`,
	audit: explainAudit + `WHERE at >= ? AND run_id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint) ORDER BY at, id LIMIT 100`,
	kept:  explainKept + `WHERE id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint)`,
}
