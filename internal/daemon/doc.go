// Package daemon is one replica: it opens the database, the supervisor, the keeper, the scheduler and the HTTP
// listener, in this order, and closes them in the reverse one.
//
// # Model
//
// New checks, Run blocks. The whole daemon boots inside a test, twice in one process if need be: nothing is global.
// The context of Run is the polite end (drain); Hurry is the impatient one. Reload reads the configuration again and gives
// the scheduler another set of jobs; watch.go calls it when the file changes. Every other key is what it was at the start
// (reload_keys.go): a configuration in which one differs is refused as a whole.
//
// # Guarantees
//
// No listener is opened that would let in whom the configuration did not mean: New refuses it (exposure.go). A Unix socket is
// its owner's alone and is never taken from a process that serves it. A new certificate is used without a restart, and a
// broken one changes nothing; the same is true of a configuration. No reload waits for, or touches, what runs. A token is
// shown once, through Options.Login, and never logged.
//
// # Failure
//
// A database that is away at start is waited for, with the listener already answering /healthz; one that goes away
// later is the scheduler's business, and so is a SQLite file that was deleted under the daemon: nothing new starts, locks
// are not renewed, /readyz says no. Run ends with an error only when something cannot be right again by itself: the
// schema is newer than the binary, the address is taken. A token file that cannot be written does not end it.
//
// # Tests
//
// daemon_test.go boots it on port 0 with both databases; what several replicas do together is in internal/fleet.
package daemon
