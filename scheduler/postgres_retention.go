package scheduler

//nolint:gochecknoglobals // a table of statements
var postgresRetention = retentionQueries{
	// From name to name through the index, instead of through all rows.
	oldest: `
WITH RECURSIVE names AS (
	(SELECT job FROM job_runs ORDER BY job LIMIT 1)
	UNION ALL
	SELECT (SELECT r.job FROM job_runs AS r WHERE r.job > n.job ORDER BY r.job LIMIT 1) FROM names AS n WHERE n.job IS NOT NULL)
SELECT n.job, (SELECT r.scheduled_at FROM job_runs AS r WHERE r.job = n.job ORDER BY r.scheduled_at, r.id LIMIT 1) AS oldest
FROM names AS n WHERE n.job IS NOT NULL`,

	// The rows are read in the order of job_runs_history, from the oldest up to the one from which on all are kept. The
	// sub-selects about the job do not depend on the row, so that each is looked up once.
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
		SELECT 1 FROM jsonb_to_recordset(?3::jsonb) AS f (job text, upstream jsonb, by_period boolean)
		WHERE left(r.occurrence, 2) <> 'm:'
			AND NOT EXISTS (SELECT 1 FROM job_runs AS w WHERE w.job = f.job
				AND w.occurrence = CASE WHEN f.by_period THEN 'p:' || r.period ELSE r.occurrence END)
			AND NOT EXISTS (SELECT 1 FROM job_runs AS l WHERE l.job = r.job AND l.occurrence = r.occurrence AND l.attempt > r.attempt)
			AND CASE WHEN f.by_period THEN r.period <> '' AND r.finished_at > ?4 AND NOT EXISTS (
					SELECT 1 FROM job_runs AS e WHERE e.job = r.job AND e.period = r.period AND e.period <> '' AND e.state = 'finished'
						AND left(e.occurrence, 2) <> 'm:' AND (e.finished_at, e.id) < (r.finished_at, r.id) AND NOT EXISTS (
						SELECT 1 FROM job_runs AS l WHERE l.job = e.job AND l.occurrence = e.occurrence AND l.attempt > e.attempt))
				ELSE EXISTS (SELECT 1 FROM job_runs AS u WHERE u.job IN (SELECT jsonb_array_elements_text(f.upstream))
					AND u.occurrence = r.occurrence AND u.state <> 'finished') END)
ORDER BY r.scheduled_at, r.id LIMIT ?5`,

	deleteRuns: `
DELETE FROM job_runs WHERE id IN (
	SELECT r.id FROM job_runs AS r
	WHERE r.id IN (SELECT jsonb_array_elements_text(?::jsonb)::bigint) AND r.state = 'finished' AND NOT r.follow AND NOT r.notify
		AND NOT EXISTS (SELECT 1 FROM job_runs AS n WHERE n.job = r.job AND n.occurrence = r.occurrence AND n.state <> 'finished')
	ORDER BY r.id FOR UPDATE OF r SKIP LOCKED)`,

	needed: `
SELECT least((SELECT min(p.position) FROM plan_positions AS p),
	(SELECT min(r.due_at) FROM job_runs AS r WHERE r.state = 'pending'), clock_timestamp()) AS needed`,

	// The newest lifetime before the instant stays: it says since when nobody was there.
	replicas: `
DELETE FROM replicas WHERE id IN (
	SELECT r.id FROM replicas AS r
	WHERE coalesce(r.left_at, r.seen_at) < (
		SELECT max(coalesce(n.left_at, n.seen_at)) FROM replicas AS n WHERE coalesce(n.left_at, n.seen_at) < ?)
	ORDER BY r.id LIMIT ? FOR UPDATE OF r SKIP LOCKED)`,

	outbox: `
DELETE FROM outbox WHERE id IN (
	SELECT o.id FROM outbox AS o WHERE o.state <> 'pending' AND o.done_at < ? ORDER BY o.id LIMIT ? FOR UPDATE OF o SKIP LOCKED)`,

	chunks: `
DELETE FROM run_output_chunks AS c USING (
	SELECT k.run_id, k.at_byte FROM run_output_chunks AS k JOIN run_outputs AS o ON o.run_id = k.run_id
		JOIN job_runs AS r ON r.id = k.run_id
	WHERE r.state = 'finished' AND r.finished_at < ? ORDER BY k.run_id, k.at_byte LIMIT ? FOR UPDATE OF k SKIP LOCKED) AS k
WHERE c.run_id = k.run_id AND c.at_byte = k.at_byte`,

	pauses: `
DELETE FROM job_pauses WHERE id IN (
	SELECT p.id FROM job_pauses AS p
	WHERE coalesce(p.resumed_at, p.until_at) < ? ORDER BY p.id LIMIT ? FOR UPDATE OF p SKIP LOCKED)`,
}
