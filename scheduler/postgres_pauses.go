package scheduler

// postgresPause selects a pause that holds now, for the job whose column comes next: `r.job)`.
const postgresPause = `SELECT 1 FROM job_pauses AS z
	WHERE z.resumed_at IS NULL AND (z.until_at IS NULL OR z.until_at > statement_timestamp()) AND z.job IN ('', `

// postgresPaused says that r has to wait for the end of a pause. A manual run does not: somebody asked for it.
const postgresPaused = `(left(r.occurrence, 2) <> 'm:' AND EXISTS (` + postgresPause + `r.job)))`

// postgresMoves says that e does not wait for the end of a pause while r does not: then r does not wait for e.
const postgresMoves = `NOT (left(r.occurrence, 2) = 'm:' AND e.state = 'pending' AND left(e.occurrence, 2) <> 'm:'
	AND EXISTS (` + postgresPause + `e.job)))`

// postgresPausesKey is the advisory lock of job_pauses: planning and claiming share it, a change has it alone. The number
// has no meaning, and must never change.
const postgresPausesKey = `6043117720915386411`

const (
	postgresHoldPauses = `SELECT pg_advisory_xact_lock_shared(` + postgresPausesKey + `)`
	postgresLockPauses = `SELECT pg_advisory_xact_lock(` + postgresPausesKey + `)`

	postgresPausesBetween = `
SELECT id, job, reason, paused_by, paused_at, coalesce(resumed_at, until_at) AS until FROM job_pauses
WHERE paused_at <= ? AND coalesce(resumed_at, until_at, 'infinity') > ? ORDER BY paused_at, id`

	postgresAuditPause = `
INSERT INTO audit_log (at, action, outcome, actor_type, actor_id, job, reason, detail)
VALUES (clock_timestamp(), ?, 'success', 'user', ?, ?, ?, ?::jsonb)`
)

// What reads the same on both databases.
const (
	openPauses = `
SELECT id, job, reason, paused_by, paused_at, until_at AS until FROM job_pauses WHERE resumed_at IS NULL ORDER BY job`

	addPause    = `INSERT INTO job_pauses (job, reason, paused_by, paused_at, until_at) VALUES (?, ?, ?, ?, ?)`
	changePause = `UPDATE job_pauses SET reason = ?, paused_by = ?, until_at = ? WHERE id = ?`
	closePause  = `UPDATE job_pauses SET resumed_by = ?, resumed_at = ? WHERE id = ?`

	isJob    = `SELECT EXISTS (SELECT 1 FROM plan_positions WHERE job = ?) OR EXISTS (SELECT 1 FROM job_runs WHERE job = ?)`
	jobNames = `SELECT DISTINCT job FROM plan_positions ORDER BY job LIMIT 1000`
)
