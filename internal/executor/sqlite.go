package executor

// sqliteLock finds the lock of the run. The transaction is the only writer from its beginning on, so nobody takes the lock
// over before its end.
const sqliteLock = `
SELECT 1 FROM distributed_locks
WHERE resource = ? AND owner = ? AND fencing_token = ? AND released_at IS NULL
AND expires_at > CAST(round(unixepoch('subsec') * 1000) AS INTEGER)`
