package locking

// liteNow is the time of one statement (SQLite keeps 'now' fixed while a statement runs) in integer milliseconds.
// round, because 1700000000.123 * 1000 in floating point is a little less than the integer.
const liteNow = `CAST(round(unixepoch('subsec') * 1000) AS INTEGER)`

const liteColumns = `id, resource, owner, principal, fencing_token, acquired_at, renewed_at, expires_at, released_at, metadata, ` +
	liteNow + ` AS now`

const (
	liteLive       = `expires_at > ` + liteNow + ` AND ` + liteUnreleased
	liteUnreleased = `(released_at IS NULL OR released_at < expires_at)`
	liteAbandoned  = `expires_at <= ` + liteNow + ` AND released_at IS NULL`

	liteLook = `SELECT false, NULL, ` + liteColumns + ` FROM distributed_locks
WHERE resource IN (SELECT value FROM json_each(?0))`

	// liteLock takes the write lock and writes nothing: a transaction that a driver began DEFERRED must not read first
	// and upgrade later, which fails at once whatever the busy timeout is.
	liteLock = `UPDATE fencing_tokens SET last = last WHERE id = 0`

	liteState    = `SELECT last, ` + liteNow + ` FROM fencing_tokens WHERE id = 1`
	liteSetToken = `UPDATE fencing_tokens SET last = ?0 WHERE id = 1`

	// liteGrant writes what Go has decided: nobody can come between, the transaction holds the write lock.
	liteGrant = `
INSERT INTO distributed_locks
	(resource, owner, principal, fencing_token, acquired_at, renewed_at, expires_at, released_at, metadata)
SELECT value ->> 'r', value ->> 'o', value ->> 'p', value ->> 'k', ?1, ?1, ?1 + (value ->> 't'), NULL, value ->> 'm'
FROM json_each(?0) WHERE true ORDER BY key
ON CONFLICT (resource) DO UPDATE SET
	owner = excluded.owner, principal = excluded.principal, fencing_token = excluded.fencing_token, acquired_at = excluded.acquired_at,
	renewed_at = excluded.renewed_at, expires_at = excluded.expires_at, released_at = NULL, metadata = excluded.metadata
RETURNING true, NULL, id, resource, owner, principal, fencing_token, acquired_at, renewed_at, expires_at, released_at, metadata, ?1`

	liteMatch = `resource = q.value ->> 'r' AND owner = q.value ->> 'o' AND principal = q.value ->> 'p'
AND (q.value ->> 'k' = 0 OR fencing_token = q.value ->> 'k') AND expires_at > ` + liteNow

	liteRenew = `
UPDATE distributed_locks SET renewed_at = ` + liteNow + `, expires_at = ` + liteNow + ` + (q.value ->> 't')
FROM json_each(?0) AS q
WHERE ` + liteMatch + ` AND released_at IS NULL
RETURNING true, NULL, ` + liteColumns

	liteRelease = `
UPDATE distributed_locks SET released_at = ` + liteNow + `, expires_at = ` + liteNow + `
FROM json_each(?0) AS q
WHERE ` + liteMatch + ` AND ` + liteUnreleased + `
RETURNING true, NULL, ` + liteColumns

	// liteForce keeps expires_at unless the release is immediate: see pgForce.
	liteForce = `
UPDATE distributed_locks SET
	released_at = CASE WHEN ?2 THEN ` + liteNow + ` ELSE COALESCE(released_at, ` + liteNow + `) END,
	expires_at = CASE WHEN ?2 THEN ` + liteNow + ` ELSE expires_at END
WHERE resource = ?0 AND fencing_token = ?1 AND ` + liteLive + `
RETURNING true, NULL, ` + liteColumns

	liteNoteForce = `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, resource, owner, fencing_token, replica, reason, detail)
VALUES (` + liteNow + `, 'lock.force_release', 'success', 'user', ?0, ?1, ?2, ?3, ?4, ?5,
	json_object('immediate', json(CASE WHEN ?6 THEN 'true' ELSE 'false' END)))`

	liteList = `SELECT false, NULL, ` + liteColumns + ` FROM distributed_locks
WHERE resource BETWEEN ?0 AND ?1 AND resource > ?2 AND (?3 = '' OR owner = ?3) AND %s
ORDER BY resource LIMIT ?4`

	// A row whose token the counter has not passed (it was set back) is kept: it is the only memory of that token.
	litePurge = `
DELETE FROM distributed_locks WHERE id IN (
	SELECT id FROM distributed_locks
	WHERE max(expires_at, COALESCE(released_at, 0)) < ` + liteNow + ` - ?0
	AND fencing_token <= (SELECT last FROM fencing_tokens)
	ORDER BY resource LIMIT ?1
)`

	liteClock = `SELECT ` + liteNow
)
