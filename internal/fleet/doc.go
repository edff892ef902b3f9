// Package fleet starts real daemons as processes, hurts them, and checks what their jobs recorded.
//
// Model: a Fleet is one database, one configuration file that the test wrote, and any number of replicas of `cronlatch
// serve`, built once per test process with the failpoints in. Jobs are the recorder (folder recorder), which writes what
// happens to it to a file (package record). A test arranges a fault, waits for conditions that it reads from the record,
// the ledger or the logs, brings the fleet to rest and lets the checkers (package check) judge the whole history.
//
// Guarantees: whatever a test does, nothing of its fleet survives it. Every daemon, supervisor and job carries the mark of
// its fleet in its environment, by which it is found and killed at the end of the test; and when the test process itself is
// killed, a small shell process does the same for all of its fleets (watchdog.go).
//
// Non-guarantees: one machine has one clock, so clocks apart are injected (CRONLATCH_WALL_OFFSET), and there is no network but
// the proxy of package netfault. A run of these tests is a sample of the schedules that a kernel may choose, no proof.
//
// Failure handling: when a test fails, the logs of its daemons and the end of its ledger are in its output.
//
// How to test: beside a PostgreSQL server, which `make test` starts: go test ./internal/fleet/... ; 100 black-holed
// holders in place of 20: CRONLATCH_FLEET_BLACKHOLES=100 go test -run BlackHoledHolders ./internal/fleet; the
// soak for five minutes in place of 20 s: CRONLATCH_FLEET_SOAK=5m; reloads for a minute: CRONLATCH_FLEET_RELOADS=1m; a daemon
// killed before and after the first three executions of each statement: CRONLATCH_FLEET_STATEMENTS=3. With
// CRONLATCH_FLEET_RACE=1 the daemons are built with the race detector. The tests need /proc, so they run on Linux.
package fleet
