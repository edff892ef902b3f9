// Package database is the one place that opens a database: PostgreSQL through bun and pgdriver, SQLite through a
// cgo-free driver. Everything that is sharp about the drivers is made safe here, once, so that the callers may use
// *bun.DB as if it were well behaved.
//
// # Model
//
// [Resolve] or [Parse] turn what the user wrote into a checked [Target]; [Open] makes a [DB] of it without
// connecting; [DB.Wait] waits until the database answers. A DB has two pools: Main for everything, and the small
// Renew, so that a saturated Main loses no lock.
//
// Between pgdriver and the server there is a [net.Conn] of our own (wire.go), and between database/sql and pgdriver
// a driver of our own (guard.go). A call (statement, rows until they are closed, BEGIN, COMMIT) begins by setting one
// hard deadline on the wire that pgdriver cannot move; it ends by looking at what the server really said (frames.go).
//
// # Guarantees
//
//   - Every call to PostgreSQL ends at the earlier of its context's end and its pool's timeout ([WithTimeout] changes
//     the latter for one context), even when the server is a black hole. Cancelling the context ends it at once.
//   - An error that is not a server's answer throws the connection away, and so does an answer that says that the
//     server is going away or read-only. No later call reads the answer of an earlier one.
//   - A statement that may have reached the server is never sent again behind the caller's back.
//   - The server gives up before the client does: statement_timeout and lock_timeout are below the pool's timeout,
//     and client_connection_check_interval ends what a vanished client started.
//   - COMMIT of a transaction that the server rolled back is [ErrRolledBack], never nil.
//   - Text with NUL or invalid UTF-8 is refused, never rewritten.
//   - TLS to a remote host is verified unless the URL says otherwise, and then the log warns.
//   - A statement that comes with arguments is prepared once for each connection, behind the same guard (prepared.go).
//     When the schema changed under it, its text is sent; the server has executed nothing then.
//   - A pooler in transaction mode (PgBouncer) is noticed, and safe: each transaction brings its settings, nothing is set
//     on a session and nothing is prepared (pooled.go).
//   - A statement outside a transaction, and a transaction that does not say otherwise, is READ COMMITTED, whatever the
//     default of the server, the database or the role. The same goes for DateStyle; TimeZone is nobody's concern.
//   - A password is never part of an error, a log line or a formatted value.
//   - SQLite runs with WAL, synchronous=FULL and foreign keys, and begins every transaction as a writer; a file that
//     was deleted, replaced or lies on a network file system is refused.
//
// # What is not guaranteed
//
// A call that got no answer may have been executed: [Unknown] says so, and only reading the database settles it. A
// statement goes on at the server for up to statement_timeout after its client gave up early (as a rule for a second:
// the connection check). Waiting for a free connection of a pool is bounded by the context alone.
//
// Behind a pooler there is no session: SET, LISTEN, session advisory locks and temporary tables outside a transaction
// reach whoever comes next, and commands that refuse to run in a transaction (VACUUM, CREATE DATABASE) fail, since each
// statement is in one. A pooler of single statements cannot be used. Main and Renew are one to a pooler: what it has of
// connections to the server must be enough for all of its clients, or renewals wait with everybody else. A pooler that
// hands on the process number of the server is not noticed; no such pooler is known.
//
// # Failure handling
//
// [Unavailable], [Unknown], [Retryable] and [SQLState] sort errors; nothing here retries except Wait.
//
// # How to test
//
// The contract tests have one row for each sharp edge of the raw driver. They show the raw behavior next to ours and
// need a real server (`make test` starts one): when a new pgdriver makes a guard unnecessary, the raw half fails.
package database
