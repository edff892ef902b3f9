package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// aboutTheQuestion tells how an instant that was asked for was read, and why it is none of the schedule.
func (t *teller) aboutTheQuestion() {
	q, j := t.f.Question, t.f.Definition
	if q.At.IsZero() || j == nil || j.Schedule == nil {
		return
	}
	switch {
	case !q.Gap.IsZero():
		t.gap(j)
		return
	case q.Twice:
		t.step(time.Time{}, Hint, nil, "%s comes twice in %s, because the clocks go back; this is about the first time, %s.",
			q.Local, t.zone, t.instant(q.At))
	}
	why, what := j.Schedule.Absent(q.At)
	if why == jobs.AbsentNot {
		return
	}
	at := t.instant(q.At)
	switch why {
	case jobs.AbsentFields:
		t.step(time.Time{}, Hint, nil, "%s is no instant of the schedule %s%s.", at, what, t.neighbours(j))
		if t.f.Instant.IsZero() {
			t.verdict("%s was not to run at %s: it is no instant of its schedule %s.", j.Name, at, what)
		}
		return
	case jobs.AbsentDST:
		t.verdict("%s did not run at %s: it is the second time that the clocks show this time, and dst: %s takes the first only.",
			j.Name, at, what)
	case jobs.AbsentCalendar:
		t.verdict("%s was not to run at %s: its calendars (%s) leave out that date, or move its runs.", j.Name, at, what)
	case jobs.AbsentFrom:
		t.verdict("%s was not to run at %s: its schedule begins at %s (from).", j.Name, at, what)
	case jobs.AbsentUntil:
		t.verdict("%s was not to run at %s: its schedule ended at %s (until).", j.Name, at, what)
	case jobs.AbsentBlackout:
		t.verdict("%s was not to run at %s: the time lies in a blackout (%s).", j.Name, at, what)
	case jobs.AbsentNot:
	}
	t.step(time.Time{}, Hint, nil, "That is as the schedule is defined now%s.", t.neighbours(j))
}

// neighbours are the instants before and after the one that was asked for.
func (t *teller) neighbours(j *jobs.Job) string {
	text := ""
	if before := j.Schedule.Last(t.f.Question.At); !before.IsZero() {
		text += "; the one before is " + t.instant(before)
	}
	if after := j.Schedule.Next(t.f.Question.At); !after.IsZero() {
		text += "; the one after is " + t.instant(after)
	}
	return text
}

// gap is for a local time that the clocks skip.
func (t *teller) gap(j *jobs.Job) {
	q := t.f.Question
	what := "no run stands in for it, because its schedule is not one of fixed times, or dst is skip"
	if j.Schedule.MadeUp(q.Gap) {
		what = "its run comes at the first instant after that, " + t.instant(q.Gap)
	}
	t.verdict("There is no %s in %s: the clocks skip it at %s, and %s.", q.Local, t.zone, stamp(q.Gap), what)
	t.step(q.Gap, Hint, nil, "The clocks go forward; the local time is %s then.", q.Gap.In(t.zone).Format("15:04:05 -07:00"))
	if !j.Schedule.MadeUp(q.Gap) {
		t.step(time.Time{}, Hint, nil, "That is as the schedule is defined now%s.", t.neighbours(j))
	}
}

// aboutTheInstant tells why the ledger has no run of an instant that the schedule has.
func (t *teller) aboutTheInstant() {
	at, j := t.f.Instant, t.f.Definition
	switch current := t.position(); {
	case at.After(t.f.Now):
		t.verdict("%s is due at %s: that is in %s.", j.Name, t.instant(at), span(at.Sub(t.f.Now)))
		t.ahead(j)
	case len(t.f.Positions) == 0:
		t.verdict("%s has no run for %s: no replica has ever planned the job.", j.Name, t.instant(at))
		t.unplannedSchedule()
	case current == nil:
		t.verdict("%s has no run for %s: no replica has planned the schedule that is defined here.", j.Name, t.instant(at))
		t.otherSchedules()
		t.unplannedSchedule()
	case current.At.Before(at):
		t.verdict("%s has no run for %s yet: its schedule is planned up to %s, and nobody has planned since.",
			j.Name, t.instant(at), stamp(current.At))
		t.behind(j, current.At)
	default:
		t.noRow(at, j)
	}
	t.step(time.Time{}, Hint, nil, "The instant after it is %s.", t.instantOrNone(j.Schedule.Next(at)))
	t.next("cronlatch runs list --job %s", quoted(j.Name))
}

// behind is for a schedule that nobody plans.
func (t *teller) behind(j *jobs.Job, planned time.Time) {
	const many = 100
	switch instants, more := j.Schedule.Between(planned, t.f.Now, many); {
	case more:
		t.step(instants[0], Blocked, nil, "This is the first of more than %d instants that nobody has planned.", many)
	case len(instants) > 1:
		t.step(instants[0], Blocked, nil, "This is the first of %d instants that nobody has planned.", len(instants))
	}
	t.tellBlocks(t.fleet(j.OnlyOn))
	t.step(time.Time{}, Future, nil, "When a replica plans again, catch_up: %s decides whether it still runs%s.",
		j.CatchUp.Policy, window(j))
	if !t.f.Question.At.IsZero() {
		return
	}
	if n := t.f.Newest; n != nil {
		t.step(n.CreatedAt, Hint, n, "Before that: %s", t.verdictOf(n))
		t.next("cronlatch explain %d", n.ID)
	}
	t.aboutTheFuture()
}

func window(j *jobs.Job) string {
	if j.CatchUp.Policy == jobs.CatchUpNone {
		return ""
	}
	return fmt.Sprintf(" (window: %s)", span(j.CatchUp.Window))
}

func (t *teller) instantOrNone(at time.Time) string {
	if at.IsZero() {
		return "none"
	}
	return t.instant(at)
}

// position is how far the schedule of the definition was planned; nil is not at all.
func (t *teller) position() *Position {
	i := slices.IndexFunc(t.f.Positions, func(p Position) bool { return p.Current })
	if i < 0 {
		return nil
	}
	return &t.f.Positions[i]
}

// noRow is for an instant that has been planned past.
func (t *teller) noRow(at time.Time, j *jobs.Job) {
	reasons := []string{}
	other := slices.ContainsFunc(t.f.Positions, func(p Position) bool { return !p.Current && !p.At.Before(at) })
	if other {
		reasons = append(reasons, "the job had another schedule then")
	}
	if t.mayBeDeleted(at) {
		reasons = append(reasons, "its run was deleted, as history says")
	}
	switch {
	case len(reasons) == 1:
		t.verdict("%s has no run for %s: %s.", j.Name, t.instant(at), reasons[0])
	case len(reasons) > 1:
		t.verdict("%s has no run for %s: %s, or %s.", j.Name, t.instant(at), reasons[0], reasons[1])
	default:
		t.verdict("%s has no run for %s: no replica knew this schedule of the job yet.", j.Name, t.instant(at))
		t.step(time.Time{}, Hint, nil,
			"A schedule is planned from the moment when the first replica has loaded it, and never for the time before.")
	}
	if other {
		t.otherSchedules()
	}
	if h := t.f.History; t.mayBeDeleted(at) {
		t.step(time.Time{}, Hint, nil, "History keeps runs for %s, and the newest %d of the job; newer than the instant are %d.",
			span(h.KeepFor), h.Keep, t.f.Newer)
	} else {
		t.step(time.Time{}, Hint, nil, "It cannot have been deleted: history keeps runs for %s, and the newest %d of the job.",
			span(h.KeepFor), h.Keep)
	}
	if o := t.f.Oldest; o != nil {
		t.step(o.CreatedAt, Planned, o, "The oldest run that the ledger has of the job is run %d for %s.", o.ID, t.instant(o.ScheduledAt))
	}
	if p := t.position(); p != nil {
		t.step(p.At, Hint, nil, "The schedule is planned up to here.")
	}
	t.next("cronlatch jobs backfill %s --from %s --until %s", quoted(j.Name), at.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
}

// mayBeDeleted says whether retention may have deleted the run of an instant.
func (t *teller) mayBeDeleted(at time.Time) bool {
	h := t.f.History
	return t.f.Now.Sub(at) > h.KeepFor && t.f.Newer >= h.Keep
}

func (t *teller) otherSchedules() {
	for _, p := range t.f.Positions {
		if !p.Current {
			t.step(p.At, Hint, nil, "Another schedule of the job was planned up to here.")
		}
	}
}

// ahead tells what could stop an instant of the future.
func (t *teller) ahead(j *jobs.Job) {
	if !j.Enabled || t.f.Instant.Equal(j.Schedule.Next(t.f.Now)) {
		t.aboutTheFuture()
		return
	}
	t.unplannedSchedule()
	if p := t.pauseAt(t.f.Instant); p != nil {
		b := t.pauseBlock(p)
		t.step(time.Time{}, Blocked, nil, "%s That instant will be missed, if nobody resumes it.", sentence(b.text)).Reason = b.reason
		t.next("%s", b.next)
	}
	t.tellBlocks(t.fleet(j.OnlyOn))
}

// nothingBefore is for a question about a time before everything that is known.
func (t *teller) nothingBefore() {
	at := t.instant(t.f.Question.At)
	t.verdict("%s has no run at or before %s.", t.f.Job, at)
	if o := t.f.Oldest; o != nil {
		t.step(o.CreatedAt, Planned, o, "The oldest run that the ledger has of the job is run %d for %s.", o.ID, t.instant(o.ScheduledAt))
	}
	t.next("cronlatch runs list --job %s", quoted(t.f.Job))
}
