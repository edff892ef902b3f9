package scheduler

const auditColumns = `id, at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason, detail`

// auditWhere reads the same on both databases. An empty prefix is every action.
const auditWhere = `
	AND (?4 = '' OR CASE WHEN ?5 > 0 THEN substr(action, 1, ?5) ELSE action END = ?4)
	AND (?6 = '' OR actor_id = ?6) AND (?7 = '' OR job = ?7) AND (?8 = 0 OR run_id = ?8) AND (?9 = '' OR replica = ?9)
ORDER BY at DESC, id DESC LIMIT ?10`

//nolint:gochecknoglobals // a table of statements
var postgresAudit = auditQueries{
	now: `SELECT clock_timestamp() AS now`,
	list: `
SELECT ` + auditColumns + ` FROM audit_log
WHERE at BETWEEN ?0::timestamptz AND ?1::timestamptz AND (at < ?2::timestamptz OR id < ?3)` + auditWhere,
	add: `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, run_id, resource, owner, fencing_token, replica, reason, detail)
VALUES (clock_timestamp(), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb)`,
}
