package locking

// Rules for the statements below; each was learned from a failure (docs/decisions/0004-data-model.md):
//
//   - Time is clock_timestamp(), read after the row was locked: a statement that waited for the row must not grant from
//     the time before. It travels as integer microseconds, so that TimeZone and DateStyle do not matter.
//   - Durations are multiples of an interval of a microsecond. The difference of two timestamps would be '1 day' at 24
//     hours, and adding a day to a time is 23 hours once a year.
//   - Rows are locked in ascending order of their resources. An UPDATE's own order is its plan's.
//   - What is variable is an argument, and a batch is one: the few texts that there are can be prepared.
const pgColumns = `
	l.id, l.resource, l.owner, l.principal, l.fencing_token,
	(extract(epoch FROM l.acquired_at) * 1000000)::bigint AS acquired,
	(extract(epoch FROM l.renewed_at) * 1000000)::bigint AS renewed,
	(extract(epoch FROM l.expires_at) * 1000000)::bigint AS expires,
	(extract(epoch FROM l.released_at) * 1000000)::bigint AS released,
	l.metadata::text AS metadata,
	(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now`

// pgAcquire is Record.FreeFor in SQL, twice. The filter in front keeps a loser from writing anything (it costs a read);
// the WHERE of DO UPDATE decides again on the locked row. The token is taken inside DO UPDATE, where no grant can come
// between: a number drawn before the wait for the row may be smaller than what was given out meanwhile.
//
// RETURNING cannot show the old row before PostgreSQL 18, and the statement's snapshot may be older than the row that is
// overwritten; so the SET list notes what it replaces in a setting of this transaction: id, token, takeover.
const pgAcquire = `
WITH q AS MATERIALIZED (
	SELECT r, o, p, t * interval '1 microsecond' AS ttl, g * interval '1 microsecond' AS grace, m::json AS m
	FROM jsonb_to_recordset($1::jsonb) AS x (r text, o text, p text, t bigint, g bigint, m text)
), won AS (
	INSERT INTO distributed_locks AS l (resource, owner, principal, fencing_token, acquired_at, renewed_at, expires_at, metadata)
	SELECT r, o, p, nextval('fencing_tokens'), now.at, now.at, now.at + ttl, m
	FROM q CROSS JOIN LATERAL (SELECT clock_timestamp() AS at WHERE q.r IS NOT NULL) AS now
	WHERE NOT EXISTS (
		SELECT FROM distributed_locks AS h
		WHERE h.resource = q.r
		AND NOT (h.owner = q.o AND h.principal = q.p AND h.released_at IS NULL)
		AND NOT COALESCE(h.released_at >= h.expires_at, false)
		AND h.expires_at + q.grace > clock_timestamp()
	)
	ORDER BY r COLLATE "C"
	ON CONFLICT (resource) DO UPDATE SET
		owner = EXCLUDED.owner,
		principal = EXCLUDED.principal,
		fencing_token = CASE
			WHEN ` + pgSameHolder + ` AND l.released_at IS NULL AND l.expires_at > clock_timestamp()
			THEN l.fencing_token
			ELSE GREATEST(l.fencing_token + 1, nextval('fencing_tokens')) END,
		acquired_at = clock_timestamp(),
		renewed_at = clock_timestamp(),
		expires_at = clock_timestamp()
			+ extract(epoch FROM EXCLUDED.expires_at - EXCLUDED.acquired_at)::float8 * interval '1 second',
		released_at = CASE WHEN set_config('cronlatch.replaced', concat_ws(' ', l.id, l.fencing_token,
			NOT ` + pgSameHolder + ` AND NOT COALESCE(l.released_at >= l.expires_at, false)), true) = ''
			THEN l.released_at END,
		metadata = EXCLUDED.metadata
	WHERE (` + pgSameHolder + ` AND l.released_at IS NULL)
	OR COALESCE(l.released_at >= l.expires_at, false)
	OR l.expires_at + COALESCE(($2::jsonb ->> EXCLUDED.resource)::bigint, 0) * interval '1 microsecond'
		<= clock_timestamp()
	RETURNING current_setting('cronlatch.replaced', true) AS replaced, ` + pgColumns + `
)
SELECT true, won.* FROM won
UNION ALL
SELECT false, NULL, ` + pgColumns + `
FROM q JOIN distributed_locks AS l ON l.resource = q.r
WHERE NOT EXISTS (SELECT FROM won WHERE won.resource = q.r)`

// pgChange renews or releases. held locks the rows that match, in order; at is the time after the lock; done writes.
// What did not match comes back as the statement's snapshot saw it. %s are: SKIP LOCKED or nothing, the condition
// beyond owner, token and expiry, the assignment, and a column that wakes who waits, or NULL.
const pgChange = `
WITH q AS MATERIALIZED (
	SELECT r, o, p, k, t * interval '1 microsecond' AS ttl
	FROM jsonb_to_recordset($1::jsonb) AS x (r text, o text, p text, k bigint, t bigint)
), held AS MATERIALIZED (
	SELECT l.id, q.ttl
	FROM q JOIN distributed_locks AS l ON l.resource = q.r
	WHERE l.owner = q.o AND l.principal = q.p AND (q.k = 0 OR l.fencing_token = q.k) AND l.expires_at > clock_timestamp()
	AND %[2]s
	ORDER BY l.resource
	FOR UPDATE OF l %[1]s
), locked AS MATERIALIZED (
	SELECT id, ttl, clock_timestamp() AS at FROM held
), done AS (
	UPDATE distributed_locks AS l SET %[3]s
	FROM locked WHERE l.id = locked.id AND l.expires_at > locked.at
	RETURNING %[4]s, ` + pgColumns + `
)
SELECT true, done.* FROM done
UNION ALL
SELECT false, NULL, ` + pgColumns + `
FROM q JOIN distributed_locks AS l ON l.resource = q.r
WHERE NOT EXISTS (SELECT FROM done WHERE done.resource = q.r)`

const pgSameHolder = `(l.owner = EXCLUDED.owner AND l.principal = EXCLUDED.principal)`

// pgWake notifies those who said that they wait for the resource. Nobody waiting is the common case and costs the look
// into a small table: a notification in every release would make all commits queue for one lock of the server.
const pgWake = `(SELECT pg_notify('cronlatch_' || left(encode(sha256(convert_to(l.resource, 'UTF8')), 'hex'), 32), '')::text
		FROM lock_waiters AS w WHERE w.resource = l.resource AND w.until > clock_timestamp())`

const (
	pgNoWake     = `NULL::text`
	pgUnforced   = `l.released_at IS NULL`
	pgUnreleased = `(l.released_at IS NULL OR l.released_at < l.expires_at)`
	pgExtend     = `renewed_at = locked.at, expires_at = locked.at + locked.ttl`
	pgFree       = `released_at = locked.at, expires_at = locked.at`
	pgLive       = `l.expires_at > clock_timestamp() AND ` + pgUnreleased
)

// pgForce keeps expires_at unless the release is immediate: renewals are refused from now on (released_at), and the
// name stays taken while the holder stops.
const pgForce = `
WITH held AS MATERIALIZED (
	SELECT l.id FROM distributed_locks AS l
	WHERE l.resource = $1::text AND l.fencing_token = $2::bigint AND ` + pgLive + `
	FOR UPDATE
), locked AS MATERIALIZED (
	SELECT id, clock_timestamp() AS at FROM held
), done AS (
	UPDATE distributed_locks AS l SET
		released_at = CASE WHEN $3::boolean THEN locked.at ELSE COALESCE(l.released_at, locked.at) END,
		expires_at = CASE WHEN $3::boolean THEN locked.at ELSE l.expires_at END
	FROM locked WHERE l.id = locked.id AND l.expires_at > locked.at
	RETURNING CASE WHEN $3::boolean THEN ` + pgWake + ` END, ` + pgColumns + `
), noted AS (
	INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, resource, owner, fencing_token, replica, reason, detail)
	SELECT clock_timestamp(), 'lock.force_release', 'success', 'user', $4::text, resource, owner, fencing_token, $6::text, $5::text,
		jsonb_build_object('immediate', $3::boolean)
	FROM done
)
SELECT true, done.* FROM done
UNION ALL
SELECT false, NULL, ` + pgColumns + `
FROM distributed_locks AS l WHERE l.resource = $1::text AND NOT EXISTS (SELECT FROM done)`

const (
	pgLook = `SELECT false, NULL, ` + pgColumns + ` FROM distributed_locks AS l
WHERE l.resource IN (SELECT jsonb_array_elements_text($1::jsonb))`

	pgList = `SELECT false, NULL, ` + pgColumns + ` FROM distributed_locks AS l
WHERE l.resource BETWEEN $1::text AND $2::text AND l.resource > $3::text AND ($4::text = '' OR l.owner = $4::text) AND %s
ORDER BY l.resource LIMIT $5::bigint`

	pgAbandoned = `l.expires_at <= clock_timestamp() AND l.released_at IS NULL`

	// A row whose token the sequence has not passed (it was set back) is kept: it is the only memory of that token.
	pgPurge = `
WITH old AS MATERIALIZED (
	SELECT l.id FROM distributed_locks AS l
	WHERE GREATEST(l.expires_at, l.released_at) < clock_timestamp() - $1::bigint * interval '1 microsecond'
	AND l.fencing_token <= (SELECT last_value FROM fencing_tokens)
	ORDER BY l.resource LIMIT $2::bigint
	FOR UPDATE SKIP LOCKED
)
DELETE FROM distributed_locks AS l USING old WHERE l.id = old.id`

	pgWait = `
INSERT INTO lock_waiters AS w (resource, until)
VALUES ($1::text, clock_timestamp() + $2::bigint * interval '1 microsecond')
ON CONFLICT (resource) DO UPDATE SET until = EXCLUDED.until WHERE w.until < EXCLUDED.until`

	pgPurgeWaiters = `DELETE FROM lock_waiters WHERE until < clock_timestamp() - interval '1 minute'`

	pgNow = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
)
