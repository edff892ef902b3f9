package explain

import (
	"encoding/json"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// Facts are what is known when somebody asks. Zero values are what nobody knows, or what is not there.
type Facts struct {
	Now time.Time // the database's clock
	Job string
	// Definition is the job's, where the process that answers knows it.
	Definition *jobs.Job
	History    jobs.History // how long the job's runs are kept

	Question Question
	// Instant is the job's instant that is told of: that of the question, or the last one before it. Zero when there is none.
	Instant time.Time

	Run      *jobs.Run  // that is told of; nil when the ledger has none
	Attempts []jobs.Run // all at its occurrence, the first one first

	Unfinished []jobs.Run // of the job, the oldest first
	Newest     *jobs.Run  // of what fell due
	Beside     []jobs.Run // runs of the job that ran while Run waited
	Related    map[int64]jobs.Run
	Upstream   []jobs.Run // what Run came after; else, of a job that comes after others, their newest runs
	Downstream []jobs.Run

	Waits []Wait         // of the attempts
	Gaps  []Gap          // while Run waited
	Kept  map[int64]Kept // of the attempts, by their ids

	Pauses   []Pause // of the job or of all, from when the run or the instant was due until now
	Locks    []Lock  // that live now, of the resources of unfinished runs and of the next instant
	Replicas []Replica
	SeenAt   time.Time      // when any replica was last heard of
	Used     map[string]int // runs that run now, by tag
	DoneBy   int64          // the run whose success counts for the resource, by once_per
	Audit    []Entry

	Positions []Position // of the job's schedules
	Oldest    *jobs.Run  // that the ledger still has of the job
	Before    *jobs.Run  // the newest before the instant
	Newer     int        // how many runs of the job are newer than the instant
}

// Question is what was asked.
type Question struct {
	RunID int64     // a run; 0 is a job
	At    time.Time // zero is now
	Local string    // At as it was asked for in the job's zone; "" when it was an instant
	Gap   time.Time // the instant at which the clocks skip Local; At is then the same
	Twice bool      // the clocks go back over Local, and At is the first of the two
}

// Pause is a span in which the job's schedule starts nothing.
type Pause struct {
	Job, Reason, By string    // Job "" is all jobs
	From, Until     time.Time // Until zero: until it is resumed
}

func (p *Pause) covers(at time.Time) bool {
	return !at.Before(p.From) && (p.Until.IsZero() || at.Before(p.Until))
}

// Lock is a lock that somebody holds now.
type Lock struct {
	Resource              string
	Token                 int64
	Since, Renewed, Until time.Time
	Metadata              json.RawMessage
}

// Replica is one that was heard of within the time after which a silent one counts as gone.
type Replica struct {
	Name              string
	Labels            map[string]string
	Running, Capacity int
	Draining          bool
}

// Position is up to where a schedule was planned.
type Position struct {
	Current bool // it is the schedule of the definition
	At      time.Time
}

// Entry is a row of audit_log about one of the attempts.
type Entry struct {
	At                             time.Time
	Action, Outcome, Actor, Reason string
	Replica                        string
	RunID                          int64
}
