package scheduler

//nolint:gochecknoglobals // a table of statements
var sqliteAudit = auditQueries{
	now: `SELECT ` + sqliteNow + ` AS now`,
	list: `
SELECT ` + auditColumns + ` FROM audit_log
WHERE at BETWEEN ?0 AND ?1 AND (at < ?2 OR id < ?3)` + auditOrder,
	texts: `json_each(%s) AS t`, place: `instr`,
	add: `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason, detail)
VALUES (` + sqliteNow + `, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
}
