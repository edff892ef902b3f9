package auth

//nolint:gochecknoglobals // constant texts
var postgresQueries = queries{
	load: `SELECT clock_timestamp() AS now, t.id, coalesce(t.hash, '') AS hash, coalesce(t.role, '') AS role,
	coalesce(t.prefix, '') AS prefix, t.created_at, t.expires_at, t.revoked_at
FROM (SELECT 1) AS one LEFT JOIN api_tokens AS t ON true ORDER BY t.id`,

	insert: pgInsert + ` ON CONFLICT (id) DO NOTHING`,
	replace: pgInsert + ` ON CONFLICT (id) DO UPDATE SET hash = EXCLUDED.hash, role = EXCLUDED.role, prefix = EXCLUDED.prefix,
	created_at = EXCLUDED.created_at, expires_at = EXCLUDED.expires_at, revoked_at = NULL`,

	revoke: `INSERT INTO api_tokens AS t (id, hash, role, created_at, revoked_at)
SELECT ?0, '', 'viewer', now, now FROM clock_timestamp() AS now
ON CONFLICT (id) DO UPDATE SET revoked_at = coalesce(t.revoked_at, clock_timestamp())`,

	audit: `INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, detail)
VALUES (clock_timestamp(), ?0, 'success', ?1, ?2, jsonb_build_object('token_id', ?3::text))`,
}

const pgInsert = `INSERT INTO api_tokens AS t (id, hash, role, prefix, created_at, expires_at)
SELECT ?0, ?1, ?2, ?3, now, now + ?4::bigint * interval '1 millisecond' FROM clock_timestamp() AS now`
