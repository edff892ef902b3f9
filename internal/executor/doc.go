// Package executor runs the jobs that are no commands: HTTP requests and SQL transactions.
//
// # Model
//
// A run is a [jobs.Task]: one function in this process under one context. Executor.Start is what the daemon hands to the
// scheduler for such jobs; commands go to the supervisor.
//
// An http job is one request and one answer (http.go). Before the socket connects, the address is looked at (address.go).
// What is kept of the answer is in mask.go.
//
// An sql job is one transaction on a connection of its own, statement by statement (sql.go, sql_store.go; the statements
// of each database are in postgres.go and sqlite.go).
//
// # What is promised
//
//   - The context of the run ends when the lock is lost or not renewed in time, at the job's timeout, and when the replica
//     leaves. A request is given up then, and a transaction is rolled back.
//   - A request reaches no address that is not public, unless the job allows it; whatever its name resolves to, at the
//     moment it is used, and in whatever form. No redirect is followed, no proxy is used, nothing is sent twice.
//   - A transaction on the database of the locks commits only while the run has its lock, with its fencing token.
//   - No statement goes on at a PostgreSQL server for longer than the lock lived when it began.
//   - Credentials of a request or of a database are in no error and, as best effort, in no output.
//
// # What is not promised
//
// There is no process, and so nothing to kill. A request that was given up may have arrived, and its receiver may be
// at work still: it can tell by Idempotency-Key and refuse by X-Cronlatch-Fencing-Token. A COMMIT on another database
// that got no answer may have happened; nothing there knows of the lock. A replica that was paused at the wrong moment
// may send a COMMIT to another database after its lock has passed on.
//
// # How to test
//
// With servers of the test itself for http, on both databases (dbtest) for sql.
package executor
