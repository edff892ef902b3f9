package scheduler

// sqlitePause selects a pause that holds now, for the job whose column comes next: `r.job)`.
const sqlitePause = `SELECT 1 FROM job_pauses AS z
	WHERE z.resumed_at IS NULL AND (z.until_at IS NULL OR z.until_at > ` + sqliteNow + `) AND z.job IN ('', `

// sqlitePaused says that r has to wait for the end of a pause. A manual run does not: somebody asked for it.
const sqlitePaused = `(substr(r.occurrence, 1, 2) <> 'm:' AND EXISTS (` + sqlitePause + `r.job)))`

// sqliteMoves says that e does not wait for the end of a pause while r does not: then r does not wait for e.
const sqliteMoves = `NOT (substr(r.occurrence, 1, 2) = 'm:' AND e.state = 'pending' AND substr(e.occurrence, 1, 2) <> 'm:'
	AND EXISTS (` + sqlitePause + `e.job)))`

const (
	sqlitePausesBetween = `
SELECT id, job, reason, paused_by, paused_at, coalesce(resumed_at, until_at) AS until FROM job_pauses
WHERE paused_at <= ? AND (coalesce(resumed_at, until_at) IS NULL OR coalesce(resumed_at, until_at) > ?) ORDER BY paused_at, id`

	sqliteAuditPause = `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, reason, detail)
VALUES (` + sqliteNow + `, ?, 'success', 'user', ?, ?, ?, ?)`
)
