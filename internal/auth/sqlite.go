package auth

// liteNow is the time of one statement in integer milliseconds.
const liteNow = `CAST(round(unixepoch('subsec') * 1000) AS INTEGER)`

//nolint:gochecknoglobals // constant texts
var sqliteQueries = queries{
	load: `SELECT ` + liteNow + ` AS now, t.id, coalesce(t.hash, '') AS hash, coalesce(t.role, '') AS role,
	coalesce(t.prefix, '') AS prefix, t.created_at, t.expires_at, t.revoked_at
FROM (SELECT 1) AS one LEFT JOIN api_tokens AS t ON true ORDER BY t.id`,

	insert: liteInsert + ` ON CONFLICT (id) DO NOTHING`,
	replace: liteInsert + ` ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, role = excluded.role, prefix = excluded.prefix,
	created_at = excluded.created_at, expires_at = excluded.expires_at, revoked_at = NULL`,

	revoke: `INSERT INTO api_tokens AS t (id, hash, role, created_at, revoked_at)
VALUES (?0, '', 'viewer', ` + liteNow + `, ` + liteNow + `)
ON CONFLICT (id) DO UPDATE SET revoked_at = coalesce(t.revoked_at, ` + liteNow + `)`,

	audit: `INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, detail)
VALUES (` + liteNow + `, ?0, 'success', ?1, ?2, json_object('token_id', ?3))`,
}

const liteInsert = `INSERT INTO api_tokens AS t (id, hash, role, prefix, created_at, expires_at)
VALUES (?0, ?1, ?2, ?3, ` + liteNow + `, ` + liteNow + ` + ?4)`
