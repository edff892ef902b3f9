package scheduler

const (
	// postgresAddChunks shares the lock of each run's row until its end: a run that ends meanwhile waits for the chunk, and
	// removes it with the others. Rows that somebody else changes are left to the next beat. It is one statement, because a
	// replica that freezes must not keep the locks.
	postgresAddChunks = `
WITH x AS MATERIALIZED (
	SELECT run_id, fencing_token, at_byte, decode(data, 'hex') AS data, head, tail
	FROM jsonb_to_recordset(?::jsonb) AS x (run_id bigint, fencing_token bigint, at_byte bigint, data text, head bigint, tail bigint)),
mine AS MATERIALIZED (
	SELECT r.id FROM job_runs AS r JOIN x ON r.id = x.run_id AND r.fencing_token = x.fencing_token
	WHERE r.state = 'running' ORDER BY r.id FOR SHARE OF r SKIP LOCKED),
old AS (
	DELETE FROM run_output_chunks AS c USING x, mine
	WHERE mine.id = x.run_id AND c.run_id = x.run_id AND c.at_byte >= x.head AND c.at_byte < x.tail)
INSERT INTO run_output_chunks (run_id, at_byte, data)
SELECT x.run_id, x.at_byte, x.data FROM x JOIN mine ON mine.id = x.run_id ORDER BY x.run_id
ON CONFLICT (run_id, at_byte) DO UPDATE SET data = excluded.data
RETURNING run_id`

	// clearChunks reads the same on both databases.
	clearChunks = `DELETE FROM run_output_chunks WHERE run_id = ?`
)
