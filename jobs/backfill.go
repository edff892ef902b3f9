package jobs

import (
	"maps"
	"strings"
	"time"
)

// Backfill is what the runs of one backfill have in common.
type Backfill struct {
	ID          string // names the limit that all of its runs share
	RequestedBy string
	Params      map[string]string // as Job.CheckParams returned them; nil is none
	Concurrency int               // how many of them run at a time, at least 1
}

// BackfillLimit is what the names of the limits of backfills begin with. No tag has a colon in it.
const BackfillLimit = "backfill:"

// BackfillRun is the row of an occurrence that a backfill runs as its given attempt, due at once and for as long as it takes.
// It has the whole retry policy before it, however many attempts there were. again says that what was done before does not
// count: neither does a marker of once_per.
func (j *Job) BackfillRun(at, now time.Time, attempt int, b Backfill, again bool) NewRun {
	n := j.pending(ScheduledOccurrence(at), at, now)
	n.Trigger, n.RequestedBy, n.Params, n.Attempt = TriggerBackfill, b.RequestedBy, b.Params, attempt
	n.StartBy = time.Time{}
	n.Limits = map[string]int{BackfillLimit + b.ID: b.Concurrency}
	maps.Copy(n.Limits, j.Limits)
	if n.Overlap != RuleAllow {
		n.Overlap = RuleWait
	}
	if b.Concurrency > 1 {
		n.Overlap = RuleAllow // the limit says how many; the resource stays what it is
	}
	n.MaxAttempts += attempt - 1
	if n.Retry.Attempts > 1 {
		n.Retry.Attempts += attempt - 1
	}
	if again {
		n.OncePer = ""
	}
	return n
}

// Backfilled reports whether the run belongs to a backfill, as one of its further attempts does, too.
func (r *Run) Backfilled() bool {
	for tag := range r.Limits {
		if strings.HasPrefix(tag, BackfillLimit) {
			return true
		}
	}
	return false
}

// AskedRetry is the attempt after a finished one that a person asks for, due at once. again says that what was done before
// does not count: neither does a marker of once_per.
func (r *Run) AskedRetry(now time.Time, by string, again bool) NewRun {
	n := r.another(TriggerRetry, now)
	n.RequestedBy, n.MaxAttempts = by, max(r.MaxAttempts, n.Attempt)
	if again {
		n.OncePer = ""
	}
	return n
}
