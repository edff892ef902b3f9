package scheduler

const sqliteOutboxReturning = `RETURNING id, channel, job, attempts, payload, state`

// sqliteUnclaimed selects messages that are due and nobody's.
const sqliteUnclaimed = `SELECT p.id FROM outbox AS p
	WHERE p.state = 'pending' AND p.due_at <= ` + sqliteNow + ` AND (p.claimed_until IS NULL OR p.claimed_until <= ` + sqliteNow + `)`

//nolint:gochecknoglobals // a table of statements
var sqliteOutbox = outboxQueries{
	claim: `
UPDATE outbox SET claimed_by = ?, claimed_until = ` + sqliteNow + ` + ?, attempts = attempts + 1
WHERE id IN (
	SELECT id FROM (` + sqliteUnclaimed + ` AND p.channel IN (SELECT value FROM json_each(?))
		AND p.channel NOT IN (SELECT b.channel FROM outbox AS b WHERE b.claimed_until > ` + sqliteNow + `)
		ORDER BY p.due_at, p.id LIMIT ?)
	UNION ALL
	SELECT id FROM (` + sqliteUnclaimed + ` AND p.channel = ? AND p.job IN (SELECT value FROM json_each(?))
		ORDER BY p.due_at, p.id LIMIT ?))
` + sqliteOutboxReturning,

	renew: `
UPDATE outbox SET claimed_until = ` + sqliteNow + ` + ?
WHERE state = 'pending' AND id IN (SELECT value FROM json_each(?)) AND claimed_by = ?`,

	sent: `
UPDATE outbox SET state = 'sent', done_at = ` + sqliteNow + `, last_error = '', claimed_until = ` + sqliteNow + ` + ?
WHERE state = 'pending' AND id IN (SELECT value FROM json_each(?))`,

	failed: `
UPDATE outbox SET due_at = ` + sqliteNow + ` + ?0, claimed_until = ` + sqliteNow + ` + ?1, last_error = ?2,
	state = CASE WHEN created_at <= ` + sqliteNow + ` - ?3 THEN 'given_up' ELSE 'pending' END,
	done_at = CASE WHEN created_at <= ` + sqliteNow + ` - ?3 THEN ` + sqliteNow + ` END
WHERE state = 'pending' AND id IN (SELECT value FROM json_each(?4)) AND claimed_by = ?5
` + sqliteOutboxReturning,

	giveUp: `
UPDATE outbox SET state = 'given_up', done_at = ` + sqliteNow + `, last_error = ?
WHERE state = 'pending' AND created_at <= ` + sqliteNow + ` - ?
	AND (claimed_until IS NULL OR claimed_until <= ` + sqliteNow + `)
	AND channel NOT IN (SELECT value FROM json_each(?))
	AND NOT (channel = ? AND job IN (SELECT value FROM json_each(?)))
` + sqliteOutboxReturning,
}
