package metrics

// postgresFacts takes a span in milliseconds and an array of names.
const postgresFacts = `
WITH w AS MATERIALIZED (
	SELECT job, count(*) AS n FROM job_runs WHERE state = 'pending' AND due_at <= statement_timestamp() GROUP BY job),
r AS MATERIALIZED (
	SELECT count(*) AS replicas, count(DISTINCT definitions_hash) AS definitions FROM replicas AS r
	WHERE left_at IS NULL AND seen_at > clock_timestamp() - ? * interval '1 millisecond'
		AND NOT EXISTS (SELECT 1 FROM replicas AS l WHERE l.boot_nonce = r.boot_nonce AND l.id > r.id)),
t AS MATERIALIZED (
	SELECT clock_timestamp() AS now, r.replicas, r.definitions, (SELECT coalesce(sum(n), 0)::bigint FROM w) AS waiting_all,
		(SELECT count(*) FROM outbox WHERE state = 'pending') AS outbox_pending,
		(SELECT count(*) FROM outbox WHERE state = 'given_up' AND done_at > clock_timestamp() - interval '1 hour') AS outbox_given_up
	FROM r)
SELECT t.*, x.job, ` + factsLastSuccess + `, ` + factsFirstPlanned + `, ` + factsLastOutcome + `, ` + factsWaiting + `,
	EXISTS (SELECT 1 FROM job_pauses AS z WHERE z.resumed_at IS NULL AND z.job IN ('', x.job)
		AND (z.until_at IS NULL OR z.until_at > statement_timestamp())) AS paused,
	(SELECT min(p.due_at) FROM job_runs AS p WHERE p.job = x.job AND p.state = 'pending' AND p.due_at > statement_timestamp()) AS next_due
FROM t LEFT JOIN jsonb_array_elements_text(?::jsonb) AS x (job) ON true`
