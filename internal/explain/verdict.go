package explain

import (
	"fmt"

	"github.com/cronlatch/cronlatch/jobs"
)

// title is a run as a sentence begins with it.
func (t *teller) title(r *jobs.Run) string {
	text := fmt.Sprintf("run %d of %s for %s", r.ID, r.Job, t.instant(r.ScheduledAt))
	if r.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d,", r.Attempt)
	}
	return "R" + text[1:]
}

// verdictOf is the one sentence about a run.
func (t *teller) verdictOf(r *jobs.Run) string {
	switch r.State {
	case jobs.StatePending:
		return t.pendingVerdict(r)
	case jobs.StateRunning:
		return t.runningVerdict(r)
	case jobs.StateHeld:
		return t.title(r) + " waits for a person: the attempt before it was lost, and on_lost is hold."
	case jobs.StateFinished:
	}
	why := t.because(r, read(r.Detail))
	if why != "" {
		why = ": " + why
	}
	if many := summary(r); many != "" {
		return fmt.Sprintf("Run %d of %s stands for %s, which did not run and are %s%s.", r.ID, r.Job, many, r.Outcome, why)
	}
	return t.title(r) + t.endVerdict(r) + t.delay(r) + why + "."
}

func (t *teller) runningVerdict(r *jobs.Run) string {
	text := fmt.Sprintf("%s runs on replica %s since %s", t.title(r), r.Replica, stamp(*r.StartedAt)) + t.delay(r)
	switch {
	case t.expired(r):
		return fmt.Sprintf("%s was started on replica %s at %s, and no outcome has come: its lock has expired, and the next replica that"+
			" looks records it as lost.", t.title(r), r.Replica, stamp(*r.StartedAt))
	case r.CancelReason != "":
		text += ", and was asked to end"
	}
	return text + "."
}

// endVerdict is what has become of a finished run.
func (t *teller) endVerdict(r *jobs.Run) string {
	where := ""
	if r.Replica != "" {
		where = " on replica " + r.Replica
	}
	switch r.Outcome {
	case jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut:
		return " " + ending(r.Outcome) + where
	case jobs.OutcomeLost:
		return " was lost" + where
	case jobs.OutcomeCancelled:
		if r.StartedAt == nil {
			return " did not run, it was cancelled"
		}
		return " was cancelled" + where
	case jobs.OutcomeSkipped:
		if r.StartedAt != nil {
			return " ran" + where + " and counts as skipped"
		}
		return " did not run, it was skipped"
	case jobs.OutcomeMissed:
		return " did not run, it was missed"
	default:
		return " ended as " + string(r.Outcome)
	}
}

// summary is the range of a row that stands for many instants; "" when it stands for one.
func summary(r *jobs.Run) string {
	from, until, n, ok := Summary(r)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d instants from %s until %s", n, stamp(from), stamp(until))
}

func (t *teller) pendingVerdict(r *jobs.Run) string {
	if r.DueAt.After(t.f.Now) {
		return fmt.Sprintf("%s has not started: it is due at %s, in %s.", t.title(r), stamp(r.DueAt), span(r.DueAt.Sub(t.f.Now)))
	}
	if blocks := t.blocks(r); len(blocks) > 0 {
		return fmt.Sprintf("%s has not started: %s.", t.title(r), blocks[0].text)
	}
	return fmt.Sprintf("%s is due since %s, and nothing is in its way: a replica takes it at its next look.", t.title(r), stamp(r.DueAt))
}
