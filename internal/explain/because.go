package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// because is why a run did not run, or did not end by itself, as a clause; "" when there is nothing to say. It takes the facts
// that it tells out of the details.
func (t *teller) because(run *jobs.Run, d *details) string {
	switch run.Reason {
	case jobs.ReasonOverlap:
		return t.overlap(run, d)
	case jobs.ReasonDisabled:
		return t.disabled(d)
	case jobs.ReasonLockHeld:
		return t.lockHeld(run, d)
	case jobs.ReasonNoCapacity:
		return "no replica that knows the job had a free slot" + t.untilDeadline(run)
	case jobs.ReasonNoReplica:
		return t.noReplica(d)
	case jobs.ReasonCatchUp:
		return "it fell due while nobody planned the schedule, although a replica reached the database" + t.unplanned(d)
	case jobs.ReasonExit:
		return exit(run)
	case jobs.ReasonSignal:
		return "a signal that was not ours ended it" + signal(run)
	case jobs.ReasonStart:
		return "it could not be started" + startError(d)
	case jobs.ReasonTimeout:
		return "its timeout passed" + t.timeout()
	case jobs.ReasonDrain:
		return fmt.Sprintf("replica %s was asked to leave, and ended it", run.Replica)
	case jobs.ReasonLeaseLost:
		return fmt.Sprintf("replica %s could not renew the lock in time, and ended it before somebody else could have the lock", run.Replica)
	case jobs.ReasonReplicaLost:
		return replicaLost(run, d)
	case jobs.ReasonStaleStart:
		return "the start came after the lock's deadline and was refused" + startError(d)
	case jobs.ReasonSupervisor:
		return "the supervisor process died, and the run with it" + startError(d)
	case jobs.ReasonRequested:
		return requested(d)
	case jobs.ReasonReplaced:
		return t.related(d.number("replaced_by"), "a later run") + " took its place (overlap: replace)"
	case jobs.ReasonOncePer:
		return fmt.Sprintf("%s has succeeded with the resource %s, and once_per: resource lets that count",
			t.related(d.number("succeeded_run"), "an earlier run"), run.Resource)
	case jobs.ReasonLimit:
		return t.limit(run, d)
	case jobs.ReasonUpstream:
		return t.upstream(d)
	case jobs.ReasonPaused:
		return t.paused(run, d)
	case jobs.ReasonNoMatchingReplica:
		return t.noMatch(run, d)
	case jobs.ReasonHTTPStatus:
		return "the answer's status was not an expected one"
	case jobs.ReasonHTTPBody:
		return "the answer's body broke off, or was not the expected one"
	case jobs.ReasonSQL:
		return "a statement was refused, or the transaction could not be committed"
	case jobs.ReasonError:
		return "the function returned an error"
	case jobs.ReasonPanic:
		return "the function panicked"
	case "":
		return ""
	default:
		return "its reason is " + string(run.Reason) + ", which this version does not know"
	}
}

// related is a run by its id, with what has become of it where the ledger still has it.
func (t *teller) related(id int64, otherwise string) string {
	if id == 0 {
		return otherwise
	}
	r, known := t.f.Related[id]
	if !known {
		return fmt.Sprintf("run %d", id)
	}
	return fmt.Sprintf("run %d (for %s, %s)", id, stamp(r.ScheduledAt), t.standing(&r))
}

// standing is how a run stands, in a few words.
func (t *teller) standing(r *jobs.Run) string {
	switch r.State {
	case jobs.StateRunning:
		return fmt.Sprintf("running on replica %s since %s", r.Replica, stamp(*r.StartedAt))
	case jobs.StateHeld:
		return "held for a person"
	case jobs.StatePending:
		return "waiting to start"
	case jobs.StateFinished:
	}
	text := outcomeWord(r.Outcome)
	if r.StartedAt != nil && r.FinishedAt != nil {
		return fmt.Sprintf("ran from %s until %s, %s", stamp(*r.StartedAt), stamp(*r.FinishedAt), text)
	}
	if r.Reason != "" {
		text += ", reason " + string(r.Reason)
	}
	return text
}

func outcomeWord(o jobs.Outcome) string {
	if o == jobs.OutcomeTimedOut {
		return "timed out"
	}
	return string(o)
}

func (t *teller) untilDeadline(run *jobs.Run) string {
	if run.StartBy == nil {
		return ""
	}
	return " until its start_deadline at " + stamp(*run.StartBy)
}

func (t *teller) overlap(run *jobs.Run, d *details) string {
	earlier := t.related(d.number("unfinished_run"), "an earlier run of the job")
	switch {
	case run.Outcome == jobs.OutcomeMissed:
		return earlier + " had not ended" + t.untilDeadline(run)
	case run.Overlap == jobs.RuleQueue:
		return earlier + " had not ended and another one was waiting already (overlap: queue lets one wait)"
	default:
		return earlier + " had not ended (overlap: skip)"
	}
}

func (t *teller) disabled(d *details) string {
	text := "the job was disabled (enabled: false)"
	if ends := t.ends(d); ends != "" {
		text += "; it would have come after " + ends
	}
	return text
}

// startError is what the error says that is not said already.
func startError(d *details) string {
	return saying(strings.TrimPrefix(d.text("error"), "jobs: starting the command: "))
}

// holder says who holds a lock, from the lock's metadata.
func holder(m *details) string {
	replica, host, pid := m.text("replica"), m.text("host"), m.number("pid")
	job, run, attempt := m.text("job"), m.number("run_id"), m.number("attempt")
	var who string
	switch {
	case replica != "":
		who = "replica " + replica
	case host != "":
		who = "a process"
	default:
		who = "a client"
	}
	where := []string{}
	if host != "" {
		where = append(where, "host "+host)
	}
	if pid != 0 {
		where = append(where, fmt.Sprintf("pid %d", pid))
	}
	if len(where) > 0 {
		who += " (" + strings.Join(where, ", ") + ")"
	}
	if run != 0 {
		who += fmt.Sprintf(" for run %d", run)
		if job != "" {
			who += " of " + job
		}
		if attempt > 1 {
			who += fmt.Sprintf(", attempt %d", attempt)
		}
	}
	return who
}

func (t *teller) lockHeld(run *jobs.Run, d *details) string {
	h := d.object("holder")
	since, until := h.instant("acquired_at"), h.instant("expires_at")
	text := fmt.Sprintf("the lock of %s was held by %s", run.Resource, holder(h.object("metadata")))
	if !since.IsZero() {
		text += " since " + stamp(since)
	}
	if run.StartBy != nil {
		text += ", and start_deadline passed at " + stamp(*run.StartBy)
	}
	if !until.IsZero() {
		text += fmt.Sprintf(" (the lock was to expire at %s unless it was renewed)", stamp(until))
	}
	return text
}

func (t *teller) noReplica(d *details) string {
	from, until := d.instant("nobody_from"), d.instant("nobody_until")
	text := "no replica reached the database when it fell due"
	switch {
	case !from.IsZero() && !until.IsZero():
		text = fmt.Sprintf("no replica reached the database from %s until %s", stamp(from), stamp(until))
	case !until.IsZero():
		text = "no replica reached the database before " + stamp(until)
	}
	return text + t.unplanned(d)
}

// unplanned tells the facts of what fell due while nobody planned.
func (t *teller) unplanned(d *details) string {
	policy, window, planned := d.text("catch_up"), d.text("window"), d.instant("planned_at")
	from, until := d.instant("unplanned_from"), d.instant("unplanned_until")
	text := ""
	if policy != "" {
		text += ", and catch_up: " + policy
		if window != "" && policy != string(jobs.CatchUpNone) {
			if w, err := time.ParseDuration(window); err == nil {
				window = span(w)
			}
			text += " with a window of " + window
		}
		text += " did not choose it"
		if !planned.IsZero() {
			text += " at " + stamp(planned)
		}
	}
	if !from.IsZero() && !until.Equal(from) {
		text += fmt.Sprintf("; unplanned were the instants from %s until %s", stamp(from), stamp(until))
	}
	return text
}

func exit(run *jobs.Run) string {
	if run.ExitCode == nil {
		return "its exit code says so"
	}
	if run.Outcome == jobs.OutcomeSkipped {
		return fmt.Sprintf("the command exited with code %d, which exit_codes.skip counts as nothing to do", *run.ExitCode)
	}
	return fmt.Sprintf("the command exited with code %d", *run.ExitCode)
}

func signal(run *jobs.Run) string {
	if run.Signal == "" {
		return ""
	}
	return ": " + run.Signal
}

func (t *teller) timeout() string {
	if t.f.Definition == nil || t.f.Definition.Timeout == 0 {
		return ""
	}
	return " (timeout is " + span(t.f.Definition.Timeout) + " now)"
}

func replicaLost(run *jobs.Run, d *details) string {
	replica, found := d.text("replica"), d.text("recovered_by")
	if replica == "" {
		replica = run.Replica
	}
	text := fmt.Sprintf("the lock with which replica %s ran it expired, and no outcome came", replica)
	if found != "" {
		text += "; replica " + found + " found that out"
	}
	return text
}

func requested(d *details) string {
	who, why := d.text("requested_by"), d.text("reason")
	if who == "" {
		who = "somebody"
	}
	return who + " asked for its end" + saying(why)
}

func (t *teller) limit(run *jobs.Run, d *details) string {
	tag := d.text("tag")
	limit := d.object("limits").number(tag)
	name := "the limit of the tag " + tag
	if strings.HasPrefix(tag, jobs.BackfillLimit) {
		name = "the backfill's concurrency"
	}
	if limit > 0 {
		name += fmt.Sprintf(" (%d at a time)", limit)
	}
	return name + " was reached" + t.untilDeadline(run)
}

// ends are the ends of the runs that another one came after, or would have come after.
func (t *teller) ends(d *details) string {
	parts := []string{}
	for _, u := range d.objects("upstream") {
		outcome := jobs.Outcome(u.text("outcome"))
		text := fmt.Sprintf("run %d of %s %s", u.number("run_id"), u.text("job"), ending(outcome))
		if reason := u.text("reason"); reason != "" {
			text += " (" + reason + ")"
		}
		if on := jobs.AfterOn(u.text("on")); on != "" && !on.Met(outcome) {
			text += " where on: " + string(on) + " is asked for"
		}
		parts = append(parts, text)
	}
	return list(parts)
}

func ending(o jobs.Outcome) string {
	switch o {
	case jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut:
		return outcomeWord(o)
	case jobs.OutcomeCancelled, jobs.OutcomeSkipped, jobs.OutcomeMissed, jobs.OutcomeLost:
		return "was " + outcomeWord(o)
	default:
		return string(o)
	}
}

func (t *teller) upstream(d *details) string {
	if ends := t.ends(d); ends != "" {
		return ends
	}
	return "a run that it comes after did not end as it should"
}

func (t *teller) paused(run *jobs.Run, d *details) string {
	p := d.object("pause")
	job, who, why := p.text("job"), p.text("by"), p.text("reason")
	from, until := p.instant("from"), p.instant("until")
	subject := "the job"
	if job == "" {
		subject = "every job"
	}
	text := fmt.Sprintf("%s was paused%s%s", subject, by(who), saying(why))
	if !from.IsZero() {
		text += fmt.Sprintf(" (from %s %s)", stamp(from), untilText(until))
	}
	if run.StartBy != nil && run.FinishedAt != nil && run.CreatedAt.Before(*run.FinishedAt) {
		text += " when start_deadline passed at " + stamp(*run.StartBy)
	}
	return text
}

func untilText(until time.Time) string {
	if until.IsZero() {
		return "until it is resumed"
	}
	return "until " + stamp(until)
}

func (t *teller) noMatch(run *jobs.Run, d *details) string {
	want := jobs.Labels{}
	if only, ok := take[map[string]any](d, "only_on"); ok {
		for label, values := range only {
			many, _ := values.([]any)
			for _, v := range many {
				want[label] = append(want[label], fmt.Sprint(v))
			}
		}
	}
	have := []string{}
	for _, r := range d.objects("replicas") {
		have = append(have, fmt.Sprintf("%s (%s)", r.text("name"), labels(r.texts("labels"))))
	}
	slices.Sort(have)
	text := "no replica had the labels that only_on asks for"
	if len(want) > 0 {
		text += " (" + wanted(want) + ")"
	}
	text += t.untilDeadline(run)
	if len(have) > 0 {
		return text + "; there were " + list(have)
	}
	return text + "; there was no replica at all"
}

// params are the names of what a run was given. Their values are with the run.
func params(p map[string]string) string {
	if len(p) == 0 {
		return ""
	}
	return " with " + list(slices.Sorted(maps.Keys(p)))
}
