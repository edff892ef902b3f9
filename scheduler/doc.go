// Package scheduler runs every due occurrence of the known jobs on exactly one of several replicas that share nothing
// but a database.
//
// # Model
//
// Everything that should run is a row of the ledger (job_runs), and a row is worked on in eight steps. Each step is one
// transaction, may be done by any replica, and may be repeated:
//
//	plan     plan_store.go    what fell due since the stored position becomes rows (outage.go); the position moves with them;
//	                          a backlog is planned in pieces (piece.go)
//	settle   settle_store.go  due rows that cannot start any more are finished: skipped or missed, with the reason;
//	                          what a later run replaces is cancelled, or asked to end (replace_store.go)
//	claim    claim_store.go   a due row, the lock of its resource, and the mark "running" are taken together or not at all,
//	                          within the limits of its tags and once per resource (limit_store.go), while its job is not
//	                          paused (pauses_store.go), by a replica that has the labels it asks for
//	run      run.go           the command runs while the lock's context lives; the keeper (package locking) renews
//	         what it prints is handed in meanwhile (output.go, output_store.go)
//	finish   finish_store.go  outcome, next attempt, output and the release of the lock, guarded by the fencing token
//	recover  finish_store.go  a running row without a live lock of its own token is lost; on_lost decides what follows
//	notify   notify_store.go  what has ended is looked at for those who want to hear of it: messages in the outbox
//	                          (notify.go decides; outbox_store.go is for who sends them)
//	follow   follow_store.go  what has ended is looked at once more: the rows of the jobs that come after it (follow.go)
//
// scheduler.go is the loop, steps.go what it does in one turn, reload.go how the jobs are replaced between two turns,
// drain.go how it ends, replica.go tells the others that we are here. The statements are in postgres.go and sqlite.go,
// one table each; store.go runs them. pausing_store.go is for people who pause jobs.
//
// # Guarantees
//
// An occurrence has one identity, computed from the schedule, so however many replicas plan it there is one row.
// A row is claimed by one replica, and starts only when the database's clock has reached its instant: no replica's own
// clock decides anything. A crash between two statements leaves the state before or after a whole step. Whoever ends a run,
// in whichever step, leaves the mark by which follow finds it: an occurrence has one row of each job that comes after it.
//
// # What is not guaranteed
//
// A replica that was paused for longer than the lock lives may go on for a moment when it wakes up, before it looks at
// the clock. The supervisor has killed its commands by then; see docs/guarantees.md for what remains.
//
// # Failure
//
// Without the database nothing new starts; running commands go on until their lock's deadline, and outcomes are
// written when it is back. The loop never ends because of an error, only because its context does.
//
// # Tests
//
// What is decided without a database (outage.go) is tested as a table; the transactions on both databases through
// dbtest; each policy as stories (policy_rig_test.go) of this loop in a bubble of testing/synctest, where SQLite's clock is the
// bubble's; the whole with real daemons in internal/fleet, where TestKilledAtEveryStatement kills one before
// and after each statement of each step: a statement that is new in type queries is killed at without further ado, as soon
// as the jobs of that test give it a reason to be executed, which the test asks for.
package scheduler
