// Package locking lets one holder at a time work on a named resource, through a table in PostgreSQL or SQLite. A lock is
// a lease: it ends by itself when nobody renews it, so a holder that crashed does not block others for ever.
//
//	locker, err := locking.Open(db)
//	lock, err := locker.Acquire(ctx, "report:monthly-2026-05", locking.TTL(30*time.Second))
//	if errors.Is(err, locking.ErrHeld) { ... } // somebody else has it: normal
//	defer lock.Release(ctx)
//	work(lock.Context(), lock.FencingToken())
//
// # Model
//
// A resource is a name; its lock is the row that says who holds it until when. The owner is a text that identifies one
// holder, and whoever knows it can renew and release. Behind a server that authenticates its callers the holder is the
// owner and the principal together: the same text from somebody else is another holder, who is refused, and neither
// renews nor releases. Who comes by the database has no principal.
//
// A grant begins with an acquire that the database says yes to and ends with a release, a force-release, or its expiry;
// every grant has a fencing token. Acquiring never waits: a resource that is held is ErrHeld, with the holder. An expired
// lock that another holder acquires is a takeover.
//
// Store is the table, one statement for each call. Keeper renews everything that a process holds, with one statement a
// beat. Locker puts both together. The package knows nothing about jobs, and works in a caller's transaction (NewStore
// takes a bun.Tx), so that a lock can be taken together with what it is taken for.
//
// Package httplock is a Store on a server's HTTP API instead of a database: OpenStore takes it, and everything below
// holds in the same way. What a server cannot tell is listed there; above all, a HeldError then has the holder's times
// and metadata, and not its owner.
//
// # Time
//
// The database's clock alone decides who holds a lock. The holder counts for itself, on a clock that goes on in suspend,
// from before its last successful request was sent: it can only believe too little. A server in between changes nothing
// of that; the request is only longer on its way. With a TTL of T it has until
//
//	deadline = sent + T - margin        margin = max(T/10, 250ms)
//
// A renewal is sent every T/3, may take min(3s, T/10), and is repeated every T/10 while its outcome is unknown. At
// StopAt, which is the deadline less the grace that the holder asked for (as much of it as is left after two missed
// renewals), the lock's context ends with the cause ErrLost. A timer does that, not an answer: a database, driver or
// network that hangs delays nothing. With the default T of 30s the holder is told to stop after 23s to 27s without an
// answer, and others can get the lock after 30s.
//
// # What is promised
//
//   - At any instant of the database's clock at most one holder has a resource.
//   - Each grant of a resource has a higher token than all earlier ones, across release, expiry, force-release, purge and
//     restart. The holder that acquires its lock again keeps its token.
//   - The context of a lock ends before the database would give the lock to somebody else, as long as the database's
//     clock does not step forward by more than the margin (plus TakeoverGrace), and the two clocks drift apart by less
//     than the margin within a TTL. A step is found at the next beat, reported and audited.
//   - "Lost" is only said by the clock or by the database's answer; an error means that nothing is known.
//   - After a loss nothing is sent with that token.
//   - A loser writes nothing and a renewal touches no index.
//   - The table is linearizable: its answers are such as if each call had been served alone, at some moment between its
//     start and its end. Package internal/linear checks that on both databases and over HTTP, through crashes.
//
// # What is not promised
//
//   - That the work stops. A context is a request: code that does not look at it, and a process that is paused (SIGSTOP, a
//     virtual machine's migration) past its lease, act on after the lock is somebody else's. Only the resource itself can
//     refuse that, by checking that the fencing token is not lower than one it has seen: see the examples
//     FencingSQL and FencingFile.
//   - Exactly-once effects: the holder may die after the effect and before it says so.
//   - Fairness, queues or waiting.
//   - Tokens across an asynchronous standby that is promoted: it may not have seen the newest grants.
//   - Anything on a platform whose boot clock stops in suspend (boottime.CountsSuspend), and across a suspend of it.
//
// # When things fail
//
// Every error of a Store but ErrInvalid leaves the outcome unknown, and is no reason to give up a lock before its time:
// ask again with the same owner. A server's refusal is such an error, too: a token that was revoked ends no lock, and the
// keeper goes on asking until its time is over. Between StopAt and the deadline the keeper goes on renewing, so that others stay away
// while the holder stops; the context stays cancelled. A row that another transaction has locked is ErrUnknown for its
// claim, and does not hold up the others. A holder that was forced out learns it at its next beat, or stops by its
// deadline; the name stays taken until then.
//
// # How to test
//
// Package lockingtest has a store in memory that works in a testing/synctest bubble, the conformance suite that all
// stores pass (the HTTP client, too), and checkers for histories of calls. The databases' tests need a PostgreSQL server: make test.
package locking
