// Package demo shows cronlatch to somebody who has nothing yet: three replicas as real processes on one SQLite file, with a
// month of history, and a long run under a lock that can be taken over.
//
// Model: [Run] makes a folder with a configuration (config.go) and a database with a history (history.go makes it, and
// store.go inserts it), starts the replicas (fleet.go, child.go), and tells what their audit says in sentences (story.go).
// [Kill] asks a running demo, over a socket of its own (control.go), to kill one of its replicas; it starts again by itself
// after a while.
//
// Guarantees: the history is a function of the seed and of the time at which it ends; its instants are those of the jobs'
// schedules, its tokens grow, and the daemons find every schedule planned up to now. At the end all processes are gone, and
// so is the folder unless it was to be kept; on Linux the replicas also end when the demo is killed. Nobody but the user
// who started a demo can end its replicas.
//
// Not guaranteed: that the history looks the same in the next version.
//
// Failure: a replica that ends by itself is started again, like one that was killed. Its log is in the demo's folder.
//
// Tests: the history is checked here against the rules of the ledger, the whole in cmd/cronlatch with real processes.
package demo
