package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// attempt tells of one attempt from its plan to its end.
func (t *teller) attempt(r *jobs.Run) {
	t.planned(r)
	t.waited(r)
	if r.StartedAt != nil {
		t.claimed(r)
	}
	if r.CancelReason != "" && r.State == jobs.StateRunning {
		t.step(time.Time{}, Blocked, r, "Its end was asked for: %s.", t.askedEnd(r))
	}
	if r.State == jobs.StateRunning {
		t.renewed(r)
	}
	t.keeping(r)
	if r.State == jobs.StateHeld {
		t.step(r.CreatedAt, Waiting, r, "It is held: it starts when a person retries it, and never by itself.")
	}
	if r.State == jobs.StateFinished {
		t.ended(r)
	}
	if r.State == jobs.StatePending {
		t.pending(r)
	}
}

// planned says why the row is there.
func (t *teller) planned(r *jobs.Run) {
	kind := Planned
	var text string
	switch r.Trigger {
	case jobs.TriggerSchedule:
		text = t.plannedBySchedule(r)
	case jobs.TriggerCatchUp:
		text = fmt.Sprintf("It fell due at %s while nobody planned, and catch_up chose it: %s planned it then.",
			t.instant(r.ScheduledAt), t.planner(r))
	case jobs.TriggerManual:
		text = fmt.Sprintf("Asked for%s%s%s.", by(r.RequestedBy), params(r.Params), saying(t.auditReason(r, "run.trigger")))
	case jobs.TriggerBackfill:
		text = fmt.Sprintf("Asked for%s, as part of a backfill%s; it is due since then.", by(r.RequestedBy), params(r.Params))
	case jobs.TriggerRetry:
		kind, text = Retried, t.retriedBy(r)
	case jobs.TriggerRecovery:
		kind, text = Retried, fmt.Sprintf("Attempt %d follows, as on_lost: %s says.", r.Attempt, r.OnLost)
	case jobs.TriggerAfter, jobs.TriggerOnSuccess, jobs.TriggerOnFailure, jobs.TriggerOnAbort:
		text = fmt.Sprintf("%s planned it %s: %s.", upper(t.planner(r)), afterWord(r.Trigger), t.follows(r))
	default:
		text = fmt.Sprintf("Planned, with the trigger %s.", r.Trigger)
	}
	t.step(r.CreatedAt, kind, r, "%s", text).Replica = t.f.Kept[r.ID].PlannedBy
	t.heldBefore(r)
}

func (t *teller) plannedBySchedule(r *jobs.Run) string {
	if from, until, n, ok := Summary(r); ok {
		return fmt.Sprintf("%s recorded the %d instants from %s until %s in one row.", upper(t.planner(r)), n, t.instant(from), t.instant(until))
	}
	if r.State == jobs.StateFinished && r.StartedAt == nil && r.FinishedAt != nil && r.FinishedAt.Equal(r.CreatedAt) {
		return fmt.Sprintf("%s recorded the instant %s when it planned.", upper(t.planner(r)), t.instant(r.ScheduledAt))
	}
	text := "Planned by its schedule for " + t.instant(r.ScheduledAt)
	if who := t.f.Kept[r.ID].PlannedBy; who != "" {
		text += ", by replica " + who
	}
	if r.DueAt.After(r.ScheduledAt) {
		text += ", due at " + stamp(r.DueAt) + " by jitter"
	}
	if j := t.f.Definition; j != nil && j.Schedule != nil && j.Schedule.MadeUp(r.ScheduledAt) {
		text += "; it stands in for a local time that the clocks skip that day"
	}
	return text + "."
}

// planner is who made the row; rows from before the ledger had it have none.
func (t *teller) planner(r *jobs.Run) string {
	if who := t.f.Kept[r.ID].PlannedBy; who != "" {
		return "replica " + who
	}
	return "a replica"
}

func upper(clause string) string { return strings.ToUpper(clause[:1]) + clause[1:] }

func afterWord(k jobs.Trigger) string {
	switch k {
	case jobs.TriggerOnSuccess:
		return "as the hook on_success"
	case jobs.TriggerOnFailure:
		return "as the hook on_failure"
	case jobs.TriggerOnAbort:
		return "as the hook on_abort"
	default:
		return "after other runs"
	}
}

// follows are the runs that this one came after.
func (t *teller) follows(r *jobs.Run) string {
	parts := []string{}
	for _, f := range r.Follows.Runs {
		text := fmt.Sprintf("run %d of %s %s", f.RunID, f.Job, ending(f.Outcome))
		if f.Reason != "" {
			text += " (" + string(f.Reason) + ")"
		}
		parts = append(parts, text)
	}
	return list(parts)
}

// auditReason is what a person said when they did it.
func (t *teller) auditReason(r *jobs.Run, action string) string {
	for _, e := range t.f.Audit {
		if e.RunID == r.ID && e.Action == action {
			return e.Reason
		}
	}
	return ""
}

func (t *teller) retriedBy(r *jobs.Run) string {
	due := ""
	if r.DueAt.After(r.CreatedAt) {
		due = ", due at " + stamp(r.DueAt)
	}
	for _, e := range t.f.Audit {
		if e.RunID == r.ID && e.Action == "run.retry" && e.At.Sub(r.CreatedAt) < time.Minute && r.State != jobs.StateHeld {
			return fmt.Sprintf("Attempt %d was asked for by %s%s%s.", r.Attempt, e.Actor, due, saying(e.Reason))
		}
	}
	return fmt.Sprintf("Attempt %d follows, as retry says%s.", r.Attempt, due)
}

// heldBefore tells who released a run that was held for a person.
func (t *teller) heldBefore(r *jobs.Run) {
	if r.Trigger != jobs.TriggerRecovery {
		return
	}
	for _, e := range t.f.Audit {
		if e.RunID == r.ID && e.Action == "run.retry" {
			t.step(e.At, Retried, r, "It was held for a person, and %s let it go%s.", e.Actor, saying(e.Reason))
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	return string(clause[0]-'a'+'A') + clause[1:] + "."
}

// pauseText has the verb in the time that fits.
func (t *teller) pauseText(p *Pause, verb string) string {
	subject := "the job"
	if p.Job == "" {
		subject = "every job"
	}
	return fmt.Sprintf("%s %s paused%s%s, from %s %s", subject, verb, by(p.By), saying(p.Reason), stamp(p.From), untilText(p.Until))
}

func (t *teller) claimed(r *jobs.Run) {
	s := t.step(*r.StartedAt, Claimed, r, "Replica %s claimed it with the lock of %s, fencing token %d.",
		r.Replica, r.Resource, r.FencingToken)
	s.Replica, s.Token = r.Replica, r.FencingToken
	for _, e := range t.f.Audit {
		if e.RunID == r.ID && e.Action == "lock.takeover" {
			t.step(e.At, Claimed, r, "The lock was taken over: %s.", e.Reason).Replica = r.Replica
		}
	}
	switch r.Reason {
	case jobs.ReasonStart, jobs.ReasonStaleStart:
		return
	default:
		t.step(*r.StartedAt, Started, r, "It started on replica %s.", r.Replica).Replica = r.Replica
	}
}

func (t *teller) askedEnd(r *jobs.Run) string {
	asked := *r
	asked.Reason = r.CancelReason
	d := read(r.CancelDetail)
	return withRest(t.because(&asked, d), d)
}

func withRest(text string, d *details) string {
	return strings.Join(append([]string{text}, d.rest()...), "; ")
}

// renewed tells of the lock of a running run.
func (t *teller) renewed(r *jobs.Run) {
	if t.expired(r) {
		t.step(time.Time{}, Lost, r, "Its lock has expired: the next replica that looks records the run as lost, and on_lost: %s decides what follows.",
			r.OnLost).Token = r.FencingToken
		if len(t.f.Replicas) == 0 {
			t.tellBlocks(t.fleet(nil))
		}
		return
	}
	l := t.lockOf(r.Resource)
	s := t.step(l.Renewed, Renewed, r, "Replica %s last renewed the lock, which is its until %s.", r.Replica, stamp(l.Until))
	s.Replica, s.Token = r.Replica, r.FencingToken
}

// expired says that a running run has no lock any more. Of other runs than those that are told of, nobody has looked.
func (t *teller) expired(r *jobs.Run) bool {
	if r.State != jobs.StateRunning || !slices.ContainsFunc(t.f.Attempts, func(a jobs.Run) bool { return a.ID == r.ID }) {
		return false
	}
	l := t.lockOf(r.Resource)
	return l == nil || l.Token != r.FencingToken
}

func (t *teller) lockOf(resource string) *Lock {
	for i := range t.f.Locks {
		if t.f.Locks[i].Resource == resource {
			return &t.f.Locks[i]
		}
	}
	return nil
}

// ended tells of the end, with every fact behind it.
func (t *teller) ended(r *jobs.Run) {
	d := read(r.Detail)
	why := t.because(r, d)
	text, kind := t.endText(r)
	if why != "" {
		text += ": " + why
	}
	for _, key := range []string{"missed_from", "missed_until"} {
		d.instant(key) // told when it was planned
	}
	d.number("missed_count")
	text = withRest(text, d) + "."
	if r.FencingToken > 0 && r.Reason != jobs.ReasonReplicaLost { // who wrote the outcome still held it
		text += " The lock was released with it."
	}
	s := t.step(*r.FinishedAt, kind, r, "%s", text)
	s.Reason, s.Facts, s.Replica, s.Token = r.Reason, all(r.Detail), r.Replica, r.FencingToken
	t.late(r)
	t.nothingFollows(r)
}

func (t *teller) endText(r *jobs.Run) (string, Kind) {
	took := ""
	if r.StartedAt != nil && r.Reason != jobs.ReasonStart && r.Reason != jobs.ReasonStaleStart {
		took = " after " + span(r.FinishedAt.Sub(*r.StartedAt))
	}
	switch r.Outcome {
	case jobs.OutcomeLost:
		return "Lost" + took, Lost
	case jobs.OutcomeSkipped, jobs.OutcomeMissed:
		if r.StartedAt == nil {
			return map[jobs.Outcome]string{jobs.OutcomeSkipped: "Skipped", jobs.OutcomeMissed: "Missed"}[r.Outcome], Blocked
		}
		return "Ended" + took + ", and counts as " + outcomeWord(r.Outcome), Finished
	case jobs.OutcomeCancelled:
		return "Cancelled" + took, Finished
	case jobs.OutcomeTimedOut:
		return "Timed out" + took, Finished
	case jobs.OutcomeFailed:
		return "Failed" + took, Finished
	case jobs.OutcomeSucceeded:
		return "Succeeded" + took, Finished
	default:
		return "Ended" + took + " as " + string(r.Outcome), Finished
	}
}

// late tells of an outcome that was reported when the run had been given away.
func (t *teller) late(r *jobs.Run) {
	if len(r.LateOutcome) == 0 {
		return
	}
	d := read(r.LateOutcome)
	replica, outcome, reason := d.text("replica"), d.text("outcome"), d.text("reason")
	token, code, sig := d.number("fencing_token"), d.number("exit_code"), d.text("signal")
	for _, key := range []string{"exit_code", "signal", "reason"} { // null, or nothing
		if v := d.m[key]; v == nil {
			delete(d.m, key)
		}
	}
	text := fmt.Sprintf("Replica %s reported later that it had %s", replica, ending(jobs.Outcome(outcome)))
	if reason != "" {
		text += " (" + reason + ")"
	}
	switch {
	case sig != "":
		text += ", signal " + sig
	case code != 0:
		text += fmt.Sprintf(", exit code %d", code)
	}
	text += fmt.Sprintf("; that was kept aside, because the run with fencing token %d had been given away", token)
	var at time.Time
	for _, e := range t.f.Audit {
		if e.RunID == r.ID && e.Action == "run.finish" {
			at = e.At
		}
	}
	s := t.step(at, Lost, r, "%s.", withRest(text, d))
	s.Replica, s.Token, s.Facts = replica, token, all(r.LateOutcome)
}

// nothingFollows says why the last attempt was the last.
func (t *teller) nothingFollows(r *jobs.Run) {
	if r.ID != t.f.Attempts[len(t.f.Attempts)-1].ID || r.StartedAt == nil {
		return
	}
	switch r.Outcome {
	case jobs.OutcomeSucceeded, jobs.OutcomeSkipped, jobs.OutcomeMissed:
		return
	case jobs.OutcomeFailed, jobs.OutcomeTimedOut:
		if r.CancelReason == "" {
			t.step(time.Time{}, Hint, r, "No further attempt follows: it was attempt %d of %d that retry allows.",
				r.Attempt, max(r.Retry.Attempts, 1))
			return
		}
	case jobs.OutcomeLost, jobs.OutcomeCancelled:
		if r.CancelReason == "" && r.OnLost == jobs.OnLostRetry {
			t.step(time.Time{}, Hint, r, "No further attempt follows: it was attempt %d of %d.", r.Attempt, r.MaxAttempts)
			return
		}
		if r.CancelReason == "" {
			t.step(time.Time{}, Hint, r, "No further attempt follows: on_lost is %s.", r.OnLost)
			return
		}
	}
	t.step(time.Time{}, Hint, r, "No further attempt follows: its end was asked for.")
}

// downstream tells what came after the occurrence.
func (t *teller) downstream() {
	for i := range t.f.Downstream {
		d := &t.f.Downstream[i]
		text := fmt.Sprintf("Run %d of %s came after it: %s", d.ID, d.Job, t.standing(d))
		t.step(d.CreatedAt, Followed, d, "%s.", text)
	}
	if r := t.f.Run; r.Follow && r.State == jobs.StateFinished {
		t.step(time.Time{}, Followed, r, "Other jobs come after this one, and no replica that knows them has looked yet.")
	}
}
