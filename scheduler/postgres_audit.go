package scheduler

const auditColumns = `id, at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason, detail`

// auditOrder reads the same on both databases; the conditions of a filter come before it.
const auditOrder = `%s
ORDER BY at DESC, id DESC LIMIT ?4`

//nolint:gochecknoglobals // a table of statements
var postgresAudit = auditQueries{
	now: `SELECT clock_timestamp() AS now`,
	list: `
SELECT ` + auditColumns + ` FROM audit_log
WHERE at BETWEEN ?0::timestamptz AND ?1::timestamptz AND (at < ?2::timestamptz OR id < ?3)` + auditOrder,
	texts: `jsonb_array_elements_text(%s::jsonb) AS t (value)`, place: `strpos`,
	add: `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason, detail)
VALUES (clock_timestamp(), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb)`,
}
