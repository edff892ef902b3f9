package scheduler

const postgresOutboxReturning = `RETURNING id, channel, job, attempts, payload, state`

// postgresUnclaimed selects messages that are due and nobody's.
const postgresUnclaimed = `SELECT p.id FROM outbox AS p
	WHERE p.state = 'pending' AND p.due_at <= statement_timestamp() AND (p.claimed_until IS NULL OR p.claimed_until <= clock_timestamp())`

// A ping waits for those of its job that are being sent, and for the earlier ones that were not tried yet; one that was tried
// waits for all that came after it.
//
// One claims at a time, so that of two senders the second one sees to which channels the first one is about to send. The
// number has no meaning, and must never change.
//
//nolint:gochecknoglobals // a table of statements
var postgresOutbox = outboxQueries{
	tryLock: `SELECT pg_try_advisory_xact_lock(6043117720915386414) AS alone`,

	claim: `
UPDATE outbox SET claimed_by = ?, claimed_until = clock_timestamp() + ? * interval '1 millisecond', attempts = attempts + 1
WHERE state = 'pending' AND (claimed_until IS NULL OR claimed_until <= clock_timestamp()) AND id IN (
	(` + postgresUnclaimed + ` AND p.channel IN (SELECT jsonb_array_elements_text(?::jsonb))
		AND p.channel NOT IN (SELECT b.channel FROM outbox AS b WHERE b.claimed_until > clock_timestamp())
	ORDER BY p.due_at, p.id LIMIT ?)
	UNION ALL
	(` + postgresUnclaimed + ` AND p.channel = ? AND p.job IN (SELECT jsonb_array_elements_text(?::jsonb))
		AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.channel = p.channel AND o.job = p.job AND o.state = 'pending' AND o.id <> p.id
			AND (o.claimed_until > clock_timestamp()
				OR CASE WHEN p.attempts = 0 THEN o.attempts = 0 AND o.id < p.id ELSE o.attempts = 0 OR o.id > p.id END))
	ORDER BY p.due_at, p.id LIMIT ?))
` + postgresOutboxReturning,

	renew: `
UPDATE outbox SET claimed_until = clock_timestamp() + ? * interval '1 millisecond'
WHERE state = 'pending' AND id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint) AND claimed_by = ?`,

	sent: `
UPDATE outbox SET state = 'sent', done_at = clock_timestamp(), last_error = '',
	claimed_until = clock_timestamp() + ? * interval '1 millisecond'
WHERE state = 'pending' AND id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint)`,

	failed: `
UPDATE outbox SET due_at = clock_timestamp() + ?0 * interval '1 millisecond',
	claimed_until = clock_timestamp() + ?1 * interval '1 millisecond', last_error = ?2,
	state = CASE WHEN created_at <= clock_timestamp() - ?3 * interval '1 millisecond' THEN 'given_up' ELSE 'pending' END,
	done_at = CASE WHEN created_at <= clock_timestamp() - ?3 * interval '1 millisecond' THEN clock_timestamp() END
WHERE state = 'pending' AND id IN (SELECT jsonb_array_elements_text(?4::jsonb)::bigint) AND claimed_by = ?5
` + postgresOutboxReturning,

	hurry: `UPDATE outbox SET due_at = clock_timestamp() WHERE state = 'pending' AND channel = ? AND due_at > clock_timestamp()`,
	overtaken: `
DELETE FROM outbox WHERE state = 'pending' AND channel = ? AND job = ? AND id < ? AND attempts > 0
	AND (claimed_until IS NULL OR claimed_until <= clock_timestamp())`,

	giveUp: `
UPDATE outbox SET state = 'given_up', done_at = clock_timestamp(), last_error = ?
WHERE state = 'pending' AND created_at <= clock_timestamp() - ? * interval '1 millisecond'
	AND (claimed_until IS NULL OR claimed_until <= clock_timestamp())
	AND channel NOT IN (SELECT jsonb_array_elements_text(?::jsonb))
	AND NOT (channel = ? AND job IN (SELECT jsonb_array_elements_text(?::jsonb)))
` + postgresOutboxReturning,
}
