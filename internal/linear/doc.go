// Package linear checks that a lock table is linearizable: that every answer it gave to many clients at once could have
// been given by one table that served one call after another, each at some moment between its start and its end.
//
// # Model
//
// Drive lets clients work on a few resources with honest calls (acquire, renew, release, get, force-release) and zombie ones
// (old tokens, other owners, after the release, after a loss), and notes each call with the moment before it was sent and the
// one after it was answered. History.Check gives the notes to Porcupine (Athalye, https://github.com/anishathalye/porcupine)
// with a model of one resource: the holder, its token, its expiry, and the highest token so far. An expiry is no event of
// the history: it is a comparison with the database's time of the call, which a grant and a renewal tell (expiry less
// TTL), and which for other answers lies between the two moments on the clock of this machine, which is the database's
// machine as well.
//
// A history is cut into segments with a quiet moment between them, in which nothing is on its way and every resource is
// read. The search stays short that way, and a call of unknown outcome (a deadline, a killed daemon, a restarted database)
// has an end: it took effect before the quiet moment or never, and the reading settles which. The model follows both.
//
// # Guarantees
//
// A problem that Check reports is an answer that no sequential table could give. When Porcupine does not come to an end in
// its time, that is a problem too. The checker is proved by stores that are wrong on purpose (mutants_test.go).
//
// # Non-guarantees
//
// Clocks: a database on another machine cannot be checked. What happens within a few milliseconds around an expiry is
// accepted both ways. Lists, purges and takeover grace are not modelled; package lockingtest looks at those.
//
// # How to test
//
// The tests drive the Go API on both databases, and the HTTP API of real daemons that are killed and whose database is
// restarted. CRONLATCH_LINEAR_OPS sets the calls of each client.
package linear
