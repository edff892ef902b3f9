package executor

import (
	"strconv"
	"time"
)

// pgLock locks the row of the run's lock until the end of the transaction when it still is the run's: whoever wants to
// take the lock over waits for that end. clock_timestamp() is read for each row that is looked at, and once more when the
// row had been changed meanwhile, after the wait for it.
const pgLock = `
SELECT 1 FROM distributed_locks
WHERE resource = $1 AND owner = $2 AND fencing_token = $3 AND released_at IS NULL AND expires_at > clock_timestamp()
FOR UPDATE`

// pgLook is pgLock without the lock on the row, which would keep renewals out while the statements run.
const pgLook = `
SELECT 1 FROM distributed_locks
WHERE resource = $1 AND owner = $2 AND fencing_token = $3 AND released_at IS NULL AND expires_at > clock_timestamp()`

// pgSettings are for the statements of the job: what package database sets for its own small statements is undone.
const pgSettings = `SET LOCAL jit = DEFAULT; SET LOCAL enable_bitmapscan = DEFAULT; SET LOCAL lock_timeout = 0`

// pgTimeout lets the server give up a statement after d.
func pgTimeout(d time.Duration) string {
	return "SET LOCAL statement_timeout = " + strconv.FormatInt(max(1, d.Milliseconds()), 10)
}
