package jobs

import (
	"encoding/json"
	"time"
)

// State is where a run stands in the ledger.
type State string

// The states of a run.
const (
	StatePending  State = "pending"
	StateRunning  State = "running"
	StateHeld     State = "held" // a person decides
	StateFinished State = "finished"
)

// Outcome is how a run ended; empty until it is finished.
type Outcome string

// The outcomes of a run.
const (
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeFailed    Outcome = "failed"
	OutcomeTimedOut  Outcome = "timed_out"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeSkipped   Outcome = "skipped"
	OutcomeMissed    Outcome = "missed"
	OutcomeLost      Outcome = "lost"
)

// Trigger is why a run is in the ledger.
type Trigger string

// The triggers of a run.
const (
	TriggerSchedule Trigger = "schedule"
	TriggerCatchUp  Trigger = "catch_up"
	TriggerManual   Trigger = "manual"
	TriggerRetry    Trigger = "retry"
	TriggerRecovery Trigger = "recovery" // the next attempt after a lost one
	TriggerBackfill Trigger = "backfill"

	// TriggerAfter and the others below are of runs that came after another one.
	TriggerAfter     Trigger = "after"
	TriggerOnSuccess Trigger = "on_success"
	TriggerOnFailure Trigger = "on_failure"
	TriggerOnAbort   Trigger = "on_abort"
)

// Reason is the code that says why a run did not run, or did not end by itself. The facts behind it are in Run.Detail.
type Reason string

// The reasons.
const (
	ReasonOverlap     Reason = "overlap"      // an earlier run of the job was unfinished
	ReasonDisabled    Reason = "disabled"     // the definition said enabled: false
	ReasonLockHeld    Reason = "lock_held"    // the resource stayed busy until start_deadline
	ReasonNoCapacity  Reason = "no_capacity"  // no replica that knows the job had a free slot until start_deadline
	ReasonNoReplica   Reason = "no_replica"   // nobody planned: no replica reached the database from A to B
	ReasonCatchUp     Reason = "catch_up"     // fell due unplanned, and the policy did not choose it
	ReasonExit        Reason = "exit"         // the command's exit code: a failure, or by exit_codes a skip
	ReasonSignal      Reason = "signal"       // the command was ended by a signal that was not ours
	ReasonStart       Reason = "start"        // the command could not be started
	ReasonTimeout     Reason = "timeout"      // the job's timeout passed
	ReasonDrain       Reason = "drain"        // the replica was asked to leave
	ReasonLeaseLost   Reason = "lease_lost"   // the lock could not be renewed; the run was stopped in time
	ReasonReplicaLost Reason = "replica_lost" // the lock expired and nobody reported an outcome
	ReasonStaleStart  Reason = "stale_start"  // the start came after the lock's deadline and was refused
	ReasonSupervisor  Reason = "supervisor"   // the supervisor process died; the run was stopped
	ReasonRequested   Reason = "requested"    // somebody asked for it
	ReasonReplaced    Reason = "replaced"     // a later run of the job took its place: overlap: replace
	ReasonOncePer     Reason = "once_per"     // an earlier run of the job has succeeded with this resource
	ReasonLimit       Reason = "limit"        // a tag's limit was reached until start_deadline
	ReasonUpstream    Reason = "upstream"     // a run that it comes after did not end as it should
	ReasonPaused      Reason = "paused"       // the job was paused when it fell due, or at its start_deadline

	// ReasonNoMatchingReplica: no replica had the labels of only_on at start_deadline.
	ReasonNoMatchingReplica Reason = "no_matching_replica"
)

// OverlapRule is what the claim of a run obeys while an earlier run of the same job is unfinished.
type OverlapRule string

// The overlap rules of a row.
const (
	RuleSkip  OverlapRule = "skip"  // the run is skipped
	RuleQueue OverlapRule = "queue" // the run waits; with one already waiting it is skipped
	RuleWait  OverlapRule = "wait"  // the run waits: instants that are caught up, and further attempts, run one after another

	RuleReplace OverlapRule = "replace" // the earlier ones are cancelled, and the run waits for their end
	RuleAllow   OverlapRule = "allow"   // the run does not look at them
)

// Run is one attempt at one occurrence (or at a manual trigger): a row of the ledger. Times are UTC by the database's
// clock; a nil time has not happened.
type Run struct {
	ID           int64
	Job          string
	Occurrence   string // s:<RFC 3339 UTC instant>, m:<request id>, or p:<period>
	Attempt      int    // from 1
	Trigger      Trigger
	RequestedBy  string
	ScheduledAt  time.Time
	DueAt        time.Time
	StartBy      *time.Time // after this instant it is missed
	Resource     string
	Overlap      OverlapRule // what the claim obeys
	OnLost       OnLost
	MaxAttempts  int
	Retry        Retry
	OncePer      OncePer           // "" is once per occurrence
	Limits       map[string]int    // by tag, as they were when the run was planned; nil is none
	OnlyOn       Labels            // what a replica's labels must be; nil is anything
	Period       string            // the date in Resource's template; "" when it has none
	Follow       bool              // other jobs come after this one, and nobody has looked yet what follows the run
	Follows      Follows           // what the run came after
	Params       map[string]string // what a manual run or a backfill was given; nil is nothing
	Notify       bool              // somebody wants to hear how it ends, and nobody has looked yet
	State        State
	Outcome      Outcome
	Reason       Reason
	Detail       json.RawMessage
	Replica      string
	Owner        string
	FencingToken int64 // 0 until claimed
	CreatedAt    time.Time
	StartedAt    *time.Time
	FinishedAt   *time.Time
	ExitCode     *int
	Signal       string
	LateOutcome  json.RawMessage // what a replica wanted to record after the run was already given away
	CancelReason Reason          // somebody asked the holder to end it, for this reason; empty otherwise
	CancelDetail json.RawMessage // the facts behind CancelReason
}

// ScheduledOccurrence is the identity of everything the calendar makes.
func ScheduledOccurrence(at time.Time) string { return "s:" + at.UTC().Format(time.RFC3339) }

// ManualOccurrence is the identity of a manual trigger; requestID is the caller's idempotency key.
func ManualOccurrence(requestID string) string { return "m:" + requestID }
