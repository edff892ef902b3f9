package metrics

const sqliteNow = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`

// sqliteFacts takes a span in milliseconds and an array of names.
const sqliteFacts = `
WITH w AS MATERIALIZED (
	SELECT job, count(*) AS n FROM job_runs WHERE state = 'pending' AND due_at <= ` + sqliteNow + ` GROUP BY job),
r AS MATERIALIZED (
	SELECT count(*) AS replicas, count(DISTINCT definitions_hash) AS definitions FROM replicas AS r
	WHERE left_at IS NULL AND seen_at > ` + sqliteNow + ` - ?
		AND NOT EXISTS (SELECT 1 FROM replicas AS l WHERE l.boot_nonce = r.boot_nonce AND l.id > r.id)),
t AS MATERIALIZED (
	SELECT ` + sqliteNow + ` AS now, r.replicas, r.definitions, (SELECT coalesce(sum(n), 0) FROM w) AS waiting_all,
		(SELECT count(*) FROM outbox WHERE state = 'pending') AS outbox_pending,
		(SELECT count(*) FROM outbox WHERE state = 'given_up' AND done_at > ` + sqliteNow + ` - 3600000) AS outbox_given_up
	FROM r),
x AS MATERIALIZED (SELECT value AS job FROM json_each(?))
SELECT t.*, x.job, ` + factsLastSuccess + `, ` + factsFirstPlanned + `, ` + factsLastOutcome + `, ` + factsWaiting + `,
	EXISTS (SELECT 1 FROM job_pauses AS z WHERE z.resumed_at IS NULL AND z.job IN ('', x.job)
		AND (z.until_at IS NULL OR z.until_at > ` + sqliteNow + `)) AS paused,
	(SELECT min(p.due_at) FROM job_runs AS p WHERE p.job = x.job AND p.state = 'pending' AND p.due_at > ` + sqliteNow + `) AS next_due
FROM t LEFT JOIN x ON true`
