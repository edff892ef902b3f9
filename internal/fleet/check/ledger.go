package check

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
)

// grain is how exact the instants in a ledger are: SQLite keeps whole milliseconds, cut off.
const grain = time.Millisecond

// Starts checks P5, P6 and P7 by comparing the ledger with what the jobs recorded: each run that recorded anything has a
// row with its token; its command was started at most once, not before its instant and not before it was claimed; and
// nothing of it lived when its row was finished.
func Starts(runs []jobs.Run, events []record.Event) error {
	var p problems
	rows := make(map[int64]*jobs.Run, len(runs))
	for i := range runs {
		rows[runs[i].ID] = &runs[i]
	}
	starts := map[int64]int{}
	for _, e := range events {
		row, ok := rows[e.Run]
		switch {
		case !ok || row.Job != e.Job || row.Attempt != e.Attempt || !row.ScheduledAt.Truncate(time.Second).Equal(e.At):
			p.add("%s of run %d (%s, attempt %d, %s): no such row", e.Kind, e.Run, e.Job, e.Attempt, e.At.Format(time.RFC3339))
			continue
		case row.FencingToken != e.Token:
			p.add("run %d (%s) worked with token %d, its row says %d", e.Run, e.Job, e.Token, row.FencingToken)
		case row.StartedAt == nil || e.Wall.Before(*row.StartedAt):
			p.add("run %d (%s) showed life at %s, its row was started at %v", e.Run, e.Job, e.Wall, row.StartedAt)
		case row.FinishedAt != nil && e.Wall.After(row.FinishedAt.Add(grain)):
			p.add("run %d (%s, pid %d, %s) showed life at %s, its row was finished at %s as %s",
				e.Run, e.Job, e.PID, e.Role, e.Wall, row.FinishedAt, row.Outcome)
		}
		if e.Kind == record.Start && e.Role == record.Main {
			starts[e.Run]++
		}
	}
	for id, n := range starts {
		if n > 1 {
			p.add("run %d (%s) was started %d times", id, rows[id].Job, n)
		}
	}
	for i := range runs {
		if r := &runs[i]; r.Outcome == jobs.OutcomeSucceeded && starts[r.ID] == 0 {
			p.add("run %d (%s) succeeded without having been started", r.ID, r.Job)
		}
	}
	early(&p, runs)
	return p.err()
}

// early: P7 by the database's clock alone.
func early(p *problems, runs []jobs.Run) {
	for i := range runs {
		if r := &runs[i]; r.StartedAt != nil && (r.StartedAt.Before(r.ScheduledAt) || r.StartedAt.Before(r.DueAt)) {
			p.add("run %d (%s) was started at %s, before its instant %s", r.ID, r.Job, r.StartedAt, r.ScheduledAt)
		}
	}
}

// Tokens checks P2 in the ledger: tokens of a resource grow with the order of the grants, and none was given twice.
func Tokens(runs []jobs.Run) error {
	var p problems
	by := map[string][]*jobs.Run{}
	for i := range runs {
		if r := &runs[i]; r.FencingToken != 0 {
			by[r.Resource] = append(by[r.Resource], r)
		}
	}
	for resource, list := range by {
		slices.SortFunc(list, func(a, b *jobs.Run) int {
			return cmp.Or(a.StartedAt.Compare(*b.StartedAt), cmp.Compare(a.FencingToken, b.FencingToken))
		})
		for i := 1; i < len(list); i++ {
			if a, b := list[i-1], list[i]; b.FencingToken <= a.FencingToken {
				p.add("%s: run %d has token %d, run %d before it had %d", resource, b.ID, b.FencingToken, a.ID, a.FencingToken)
			}
		}
	}
	return p.err()
}

// Finished checks that the ledger came to rest: every run has an end; only what a person must decide about is held.
func Finished(runs []jobs.Run) error {
	var p problems
	for i := range runs {
		switch r := &runs[i]; r.State {
		case jobs.StateFinished:
			if r.Outcome == "" || r.FinishedAt == nil {
				p.add("run %d (%s) is finished without outcome or instant", r.ID, r.Job)
			}
		case jobs.StateHeld:
			if r.OnLost != jobs.OnLostHold {
				p.add("run %d (%s) is held, its policy is %s", r.ID, r.Job, r.OnLost)
			}
		default:
			p.add("run %d (%s, %s) is still %s", r.ID, r.Job, r.Occurrence, r.State)
		}
	}
	return p.err()
}

// Attempts checks that each occurrence has the attempts that its policy says: numbered from 1 without a gap, another
// one after each that was lost or drained as far as on_lost and the number of attempts allow, and none after any other.
func Attempts(runs []jobs.Run) error {
	var p problems
	type identity struct{ job, occurrence string }
	by := map[identity][]*jobs.Run{}
	for i := range runs {
		id := identity{runs[i].Job, runs[i].Occurrence}
		by[id] = append(by[id], &runs[i])
	}
	for id, list := range by {
		slices.SortFunc(list, func(a, b *jobs.Run) int { return cmp.Compare(a.Attempt, b.Attempt) })
		for i, r := range list {
			if r.Attempt != i+1 {
				p.add("%s %s: attempt %d is number %d", id.job, id.occurrence, r.Attempt, i+1)
			}
			if last := i == len(list)-1; last == wantsAnother(r) {
				p.add("%s %s: attempt %d of %d ended as %q %q with on_lost %s: another one follows: %t",
					id.job, id.occurrence, r.Attempt, r.MaxAttempts, r.Outcome, r.Reason, r.OnLost, !last)
			}
		}
	}
	return p.err()
}

func wantsAnother(r *jobs.Run) bool {
	if r.Outcome == jobs.OutcomeFailed || r.Outcome == jobs.OutcomeTimedOut {
		return r.CancelReason == "" && r.Attempt < r.Retry.Attempts
	}
	if r.Outcome != jobs.OutcomeLost && r.Reason != jobs.ReasonDrain {
		return false
	}
	return r.OnLost == jobs.OnLostHold || r.OnLost == jobs.OnLostRetry && r.Attempt < r.MaxAttempts
}

// overlapSlack is how long a run may have been finished already when the next one was skipped because of it: the
// skipping transaction began before the finishing one was committed.
const overlapSlack = time.Second

// NotRun checks that each occurrence that did not run was skipped because an earlier run of the same job was really
// unfinished when it fell due, or missed because it was planned more than late after its time had come.
func NotRun(runs []jobs.Run, late time.Duration) error {
	var p problems
	by := map[string][]*jobs.Run{}
	for i := range runs {
		by[runs[i].Job] = append(by[runs[i].Job], &runs[i])
	}
	for i := range runs {
		r := &runs[i]
		if r.State != jobs.StateFinished || r.StartedAt != nil || unplanned(r, late) {
			continue
		}
		if r.Outcome != jobs.OutcomeSkipped || r.Reason != jobs.ReasonOverlap {
			p.add("run %d (%s, %s) did not run: %s, %q, %s", r.ID, r.Job, r.Occurrence, r.Outcome, r.Reason, r.Detail)
			continue
		}
		if !slices.ContainsFunc(by[r.Job], func(e *jobs.Run) bool { return unfinishedBefore(e, r) }) {
			p.add("run %d (%s, %s) was skipped, but no earlier run was unfinished then", r.ID, r.Job, r.Occurrence)
		}
	}
	return p.err()
}

// unplanned: the row says that r belongs to a span in which nobody planned, and was made when that had lasted for long
// enough.
func unplanned(r *jobs.Run, late time.Duration) bool {
	var facts struct {
		From time.Time `json:"unplanned_from"`
	}
	return r.Outcome == jobs.OutcomeMissed && (r.Reason == jobs.ReasonCatchUp || r.Reason == jobs.ReasonNoReplica) &&
		json.Unmarshal(r.Detail, &facts) == nil && !facts.From.IsZero() && !r.ScheduledAt.Before(facts.From) &&
		r.CreatedAt.Sub(facts.From) > late
}

// unfinishedBefore: e is an earlier occurrence (or attempt at one) that was not over when r fell due.
func unfinishedBefore(e, r *jobs.Run) bool {
	return e.ScheduledAt.Before(r.ScheduledAt) && e.CreatedAt.Before(r.FinishedAt.Add(grain)) &&
		(e.FinishedAt == nil || e.FinishedAt.Add(overlapSlack).After(r.DueAt))
}
