package scheduler

//nolint:gochecknoglobals // a table of statements
var sqliteRetention = retentionQueries{
	oldest: `
WITH RECURSIVE names (job) AS (
	SELECT min(job) FROM job_runs
	UNION ALL
	SELECT (SELECT min(r.job) FROM job_runs AS r WHERE r.job > n.job) FROM names AS n WHERE n.job IS NOT NULL)
SELECT n.job, (SELECT r.scheduled_at FROM job_runs AS r WHERE r.job = n.job ORDER BY r.scheduled_at, r.id LIMIT 1) AS oldest
FROM names AS n WHERE n.job IS NOT NULL`,

	old: `
SELECT r.id FROM job_runs AS r
WHERE r.job = ?0 AND r.scheduled_at < ?1 AND r.state = 'finished' AND r.finished_at < ?1 AND NOT r.follow AND NOT r.notify
	AND (r.scheduled_at, r.id) < (
		SELECT k.scheduled_at, k.id FROM job_runs AS k WHERE k.job = ?0 ORDER BY k.scheduled_at DESC, k.id DESC LIMIT 1 OFFSET ?2 - 1)
	AND r.id <> coalesce((SELECT k.id FROM job_runs AS k WHERE k.job = ?0 AND k.outcome = 'succeeded'
		ORDER BY k.scheduled_at DESC, k.id DESC LIMIT 1),
		(SELECT k.id FROM job_runs AS k WHERE k.job = ?0 ORDER BY k.scheduled_at, k.id LIMIT 1))
	AND r.id <> coalesce((SELECT k.id FROM job_runs AS k WHERE k.job = ?0 AND k.outcome IN ('failed', 'timed_out', 'lost')
		ORDER BY k.scheduled_at DESC, k.id DESC LIMIT 1), 0)
	AND NOT EXISTS (SELECT 1 FROM job_runs AS n WHERE n.job = r.job AND n.occurrence = r.occurrence AND n.state <> 'finished')
	AND NOT EXISTS (
		SELECT 1 FROM json_each(?3) AS f
		WHERE substr(r.occurrence, 1, 2) <> 'm:'
			AND NOT EXISTS (SELECT 1 FROM job_runs AS w WHERE w.job = f.value->>'job'
				AND w.occurrence = CASE WHEN f.value->>'by_period' THEN 'p:' || r.period ELSE r.occurrence END)
			AND NOT EXISTS (SELECT 1 FROM job_runs AS l WHERE l.job = r.job AND l.occurrence = r.occurrence AND l.attempt > r.attempt)
			AND CASE WHEN f.value->>'by_period' THEN r.period <> '' AND r.finished_at > ?4 AND NOT EXISTS (
					SELECT 1 FROM job_runs AS e WHERE e.job = r.job AND e.period = r.period AND e.period <> '' AND e.state = 'finished'
						AND substr(e.occurrence, 1, 2) <> 'm:' AND (e.finished_at, e.id) < (r.finished_at, r.id) AND NOT EXISTS (
						SELECT 1 FROM job_runs AS l WHERE l.job = e.job AND l.occurrence = e.occurrence AND l.attempt > e.attempt))
				ELSE EXISTS (SELECT 1 FROM job_runs AS u WHERE u.job IN (SELECT value FROM json_each(f.value->'upstream'))
					AND u.occurrence = r.occurrence AND u.state <> 'finished') END)
ORDER BY r.scheduled_at, r.id LIMIT ?5`,

	deleteRuns: `
DELETE FROM job_runs WHERE id IN (SELECT value FROM json_each(?)) AND state = 'finished' AND NOT follow AND NOT notify
	AND NOT EXISTS (SELECT 1 FROM job_runs AS n
		WHERE n.job = job_runs.job AND n.occurrence = job_runs.occurrence AND n.state <> 'finished')`,

	needed: `
SELECT min(coalesce((SELECT min(p.position) FROM plan_positions AS p), now),
	coalesce((SELECT min(r.due_at) FROM job_runs AS r WHERE r.state = 'pending'), now), now) AS needed
FROM (SELECT ` + sqliteNow + ` AS now)`,

	replicas: `
DELETE FROM replicas WHERE id IN (
	SELECT r.id FROM replicas AS r
	WHERE coalesce(r.left_at, r.seen_at) < (
		SELECT max(coalesce(n.left_at, n.seen_at)) FROM replicas AS n WHERE coalesce(n.left_at, n.seen_at) < ?)
	ORDER BY r.id LIMIT ?)`,

	outbox: `
DELETE FROM outbox WHERE id IN (
	SELECT o.id FROM outbox AS o WHERE o.state <> 'pending' AND o.done_at < ? ORDER BY o.id LIMIT ?)`,

	chunks: `
DELETE FROM run_output_chunks WHERE (run_id, at_byte) IN (
	SELECT k.run_id, k.at_byte FROM run_output_chunks AS k JOIN run_outputs AS o ON o.run_id = k.run_id
		JOIN job_runs AS r ON r.id = k.run_id
	WHERE r.state = 'finished' AND r.finished_at < ? ORDER BY k.run_id, k.at_byte LIMIT ?)`,

	pauses: `
DELETE FROM job_pauses WHERE id IN (
	SELECT p.id FROM job_pauses AS p WHERE coalesce(p.resumed_at, p.until_at) < ? ORDER BY p.id LIMIT ?)`,
}
