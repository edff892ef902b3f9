package scheduler

const (
	sqliteAddChunks = `
INSERT INTO run_output_chunks (run_id, at_byte, data)
SELECT x.value->>'run_id', x.value->>'at_byte', unhex(x.value->>'data') FROM json_each(?) AS x
WHERE EXISTS (SELECT 1 FROM job_runs AS r WHERE r.id = x.value->>'run_id' AND r.state = 'running'
	AND r.fencing_token = x.value->>'fencing_token')
ON CONFLICT (run_id, at_byte) DO UPDATE SET data = excluded.data
RETURNING run_id`

	sqliteDropChunks = `
DELETE FROM run_output_chunks WHERE (run_id, at_byte) IN (
	SELECT c.run_id, c.at_byte FROM json_each(?) AS x JOIN run_output_chunks AS c ON c.run_id = x.value->>'run_id'
		AND c.at_byte >= x.value->>'head' AND c.at_byte < x.value->>'tail')`
)
