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
		AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.channel = p.channel AND o.job = p.job AND o.state = 'pending' AND o.id <> p.id
			AND (o.claimed_until > ` + sqliteNow + `
				OR CASE WHEN p.attempts = 0 THEN o.attempts = 0 AND o.id < p.id ELSE o.attempts = 0 OR o.id > p.id END))
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

	hurry: `UPDATE outbox SET due_at = ` + sqliteNow + ` WHERE state = 'pending' AND channel = ? AND due_at > ` + sqliteNow,
	overtaken: `
DELETE FROM outbox WHERE state = 'pending' AND channel = ? AND job = ? AND id < ? AND attempts > 0
	AND (claimed_until IS NULL OR claimed_until <= ` + sqliteNow + `)`,

	giveUp: `
UPDATE outbox SET state = 'given_up', done_at = ` + sqliteNow + `, last_error = ?
WHERE state = 'pending' AND created_at <= ` + sqliteNow + ` - ?
	AND (claimed_until IS NULL OR claimed_until <= ` + sqliteNow + `)
	AND channel NOT IN (SELECT value FROM json_each(?))
	AND NOT (channel = ? AND job IN (SELECT value FROM json_each(?)))
` + sqliteOutboxReturning,
}
