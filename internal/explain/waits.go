package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// Wait is something that a due run was seen to wait for.
type Wait struct {
	RunID  int64
	Cause  jobs.Reason
	Holder string // the token of a lock, the tag of a limit, the id of a run
	At     time.Time
	By     string // the replica that saw it
	Detail json.RawMessage
}

// Gap is a span in which no replica reached the database. From is zero when there was none before.
type Gap struct{ From, Until time.Time }

// Kept is what the ledger has of a run beside what it is.
type Kept struct {
	PlannedBy string
	Renewals  *int           // of its lock; nil where nobody who held it wrote the outcome
	LeastLeft *time.Duration // of the lease when a renewal was confirmed; nil when there was none
}

// WaitWorthTelling is the shortest: an idle replica looks once a second.
const WaitWorthTelling = 3 * time.Second

// hindrance is something that was in the way of a run, and is told as a step.
type hindrance struct {
	step Step
	what string // that it waited for
	run  int64  // that is worth a look; 0 is none
}

// waits is when a run was due and until when it waited; false when that is not worth telling.
func (t *teller) waits(r *jobs.Run) (due, until time.Time, ok bool) {
	due, until = later(r.DueAt, r.CreatedAt), t.f.Now
	switch {
	case r.StartedAt != nil:
		until = *r.StartedAt
	case r.FinishedAt != nil:
		until = *r.FinishedAt
	}
	return due, until, until.Sub(due) >= WaitWorthTelling && r.State != jobs.StateHeld
}

// hindrances are what a run waited for, in the order in which it came into the way.
func (t *teller) hindrances(r *jobs.Run) (list []hindrance) {
	due, until, ok := t.waits(r)
	if !ok {
		return nil
	}
	add := func(at time.Time, reason jobs.Reason, what, format string, args ...any) *hindrance {
		list = append(list, hindrance{what: what, step: Step{
			At: later(at, due), Kind: Blocked, Reason: reason, Text: fmt.Sprintf(format, args...),
		}})
		return &list[len(list)-1]
	}
	for i := range t.f.Pauses {
		p := &t.f.Pauses[i]
		if r.State != jobs.StatePending && p.From.Before(until) && (p.Until.IsZero() || p.Until.After(due)) && r.Trigger != jobs.TriggerManual {
			add(p.From, jobs.ReasonPaused, "the end of a pause", "%s", sentence(t.pauseText(p, "was")))
		}
	}
	for _, g := range t.f.Gaps {
		if g.Until.After(due) && g.From.Before(until) {
			add(g.From, jobs.ReasonNoReplica, "a replica that reaches the database", "No replica reached the database %s.", gapText(g))
		}
	}
	for i := range t.f.Beside {
		if b := &t.f.Beside[i]; b.ID != r.ID && b.StartedAt.Before(until) && (b.FinishedAt == nil || b.FinishedAt.After(due)) {
			add(*b.StartedAt, jobs.ReasonOverlap, fmt.Sprintf("run %d of the job", b.ID), "Run %d of the job had not ended: %s.", b.ID, t.standing(b)).run = b.ID
		}
	}
	for i := range t.f.Waits {
		if w := &t.f.Waits[i]; w.RunID == r.ID && !t.toldAnyway(r, w) && !t.toldOfRun(list, w) {
			what, text, since := t.seen(r, w)
			h := add(since, w.Cause, what, "%s", text)
			h.step.Facts, h.step.Replica, h.run = all(w.Detail), w.By, t.runBehind(w)
		}
	}
	slices.SortStableFunc(list, func(a, b hindrance) int { return a.step.At.Compare(b.step.At) })
	return list
}

func gapText(g Gap) string {
	if g.From.IsZero() {
		return "before " + stamp(g.Until)
	}
	return fmt.Sprintf("from %s until %s", stamp(g.From), stamp(g.Until))
}

// waited tells of the time between due and start.
func (t *teller) waited(r *jobs.Run) {
	list := t.hindrances(r)
	for i := range list {
		h := &list[i].step
		s := t.step(h.At, h.Kind, r, "%s", h.Text)
		s.Reason, s.Facts, s.Replica = h.Reason, h.Facts, h.Replica
		if list[i].run != 0 {
			t.next("cronlatch explain %d", list[i].run)
		}
	}
	if due, until, ok := t.waits(r); ok && r.StartedAt != nil {
		t.step(until, Waiting, r, "It waited for %s from when it was due%s.", span(until.Sub(due)), whatFor(list))
	}
}

// whatFor is ", for the lock of x, then for a free slot", or nothing.
func whatFor(list []hindrance) string {
	names := []string{}
	for i := range list {
		if !slices.Contains(names, list[i].what) {
			names = append(names, list[i].what)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", for " + strings.Join(names, ", then for ")
}

// delay is what the verdict about a run that has started says of its wait; "" when there was none.
func (t *teller) delay(r *jobs.Run) string {
	if r.StartedAt == nil || !slices.ContainsFunc(t.f.Attempts, func(a jobs.Run) bool { return a.ID == r.ID }) {
		return ""
	}
	due, until, ok := t.waits(r)
	if !ok {
		return ""
	}
	return fmt.Sprintf(", after a wait of %s%s", span(until.Sub(due)), strings.TrimPrefix(whatFor(t.hindrances(r)), ","))
}

// toldAnyway: what is in the way of a pending run now, and what an outcome gives as its reason.
func (t *teller) toldAnyway(r *jobs.Run, w *Wait) bool {
	switch {
	case r.State == jobs.StatePending && w.Cause == jobs.ReasonLockHeld:
		l := t.lockOf(r.Resource)
		return l != nil && strconv.FormatInt(l.Token, 10) == w.Holder
	case r.State == jobs.StatePending:
		return slices.ContainsFunc(t.blocks(r), func(b block) bool { return b.reason == w.Cause })
	case r.StartedAt != nil || r.Reason != w.Cause:
		return false
	case w.Cause == jobs.ReasonLockHeld:
		was, is := read(w.Detail).object("holder"), read(r.Detail).object("holder")
		return was.instant("acquired_at").Equal(is.instant("acquired_at"))
	default:
		return true
	}
}

// toldOfRun: an earlier run of the job that was seen before it began is told of by when it ran.
func (t *teller) toldOfRun(list []hindrance, w *Wait) bool {
	return w.Cause == jobs.ReasonOverlap && read(w.Detail).text("state") == string(jobs.StatePending) &&
		slices.ContainsFunc(list, func(h hindrance) bool { return h.step.Reason == w.Cause && h.run == t.runBehind(w) })
}

// seen is what was taken down of a wait: what for, a sentence, and since when it was in the way.
func (t *teller) seen(r *jobs.Run, w *Wait) (what, text string, since time.Time) {
	d := read(w.Detail)
	since = w.At
	switch w.Cause {
	case jobs.ReasonLockHeld:
		what = "the lock of " + r.Resource
		text, since = t.heldThen(r, w, d)
	case jobs.ReasonLimit:
		what, text = fullThen(d)
	case jobs.ReasonNoCapacity:
		what = "a free slot"
		text = fmt.Sprintf("replica %s had no free slot: it ran %d at a time%s", d.text("replica"), d.number("capacity"), inTheWay(d))
	case jobs.ReasonNoMatchingReplica:
		what, text = "a replica with the labels", t.noMatch(&jobs.Run{}, d)
	case jobs.ReasonOverlap:
		id := d.number("unfinished_run")
		what, text = fmt.Sprintf("run %d of the job", id), fmt.Sprintf("run %d of the job had not ended", id)
		if d.text("state") == string(jobs.StateHeld) {
			text += ": it was held for a person"
		}
	default:
		what, text = string(w.Cause), "its reason to wait was "+string(w.Cause)
	}
	return what, sentence(withRest(text, d)), since
}

// heldThen tells of a lock that was in the way, and of the run that had it.
func (t *teller) heldThen(r *jobs.Run, w *Wait, d *details) (text string, since time.Time) {
	h := d.object("holder")
	since = h.instant("acquired_at")
	h.instant("expires_at") // it was renewed since, or not: the claim tells when it was gone
	token := d.number("fencing_token")
	m := h.object("metadata")
	text = m.told(fmt.Sprintf("the lock of %s was held by %s since %s", r.Resource, holder(m), stamp(since)))
	// Anybody may write any metadata: the run that is named is the holder when it has the token.
	id := read(w.Detail).object("holder").object("metadata").number("run_id")
	if other, ok := t.f.Related[id]; ok && other.FencingToken == token && other.Resource == r.Resource && other.FinishedAt != nil {
		text += fmt.Sprintf("; that run ended at %s, %s", stamp(*other.FinishedAt), outcomeWord(other.Outcome))
	}
	return text, since
}

func fullThen(d *details) (what, text string) {
	tag := d.text("tag")
	what = "the limit of the tag " + tag
	if strings.HasPrefix(tag, jobs.BackfillLimit) {
		what = "the backfill's concurrency"
	}
	text = what + " was reached"
	if limit := d.number("limit"); limit > 0 {
		text = fmt.Sprintf("%s (%d at a time) was reached", what, limit)
	}
	return what, text + inTheWay(d)
}

// inTheWay names the runs that ran.
func inTheWay(d *details) string {
	parts := []string{}
	for _, o := range d.objects("running") {
		parts = append(parts, fmt.Sprintf("run %d of %s on replica %s", o.number("run_id"), o.text("job"), o.text("replica")))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + list(parts) + ")"
}

// runBehind is the first run that was in the way; 0 is none. Anybody may write any metadata of a lock: the run that they name
// counts when the ledger has it.
func (t *teller) runBehind(w *Wait) int64 {
	ids := WaitedFor(w.Detail)
	for _, o := range read(w.Detail).objects("running") {
		ids = append(ids, o.number("run_id"))
	}
	for _, id := range ids {
		if _, known := t.f.Related[id]; known || w.Cause != jobs.ReasonLockHeld {
			return id
		}
	}
	return 0
}

// WaitedFor are the runs that the detail of a wait names.
func WaitedFor(doc json.RawMessage) (ids []int64) {
	d := read(doc)
	for _, id := range []int64{d.number("unfinished_run"), d.object("holder").object("metadata").number("run_id")} {
		if id > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// keeping tells how the lock of a run that has ended was kept.
func (t *teller) keeping(r *jobs.Run) {
	k, ok := t.f.Kept[r.ID]
	if !ok || k.Renewals == nil || *k.Renewals == 0 || k.LeastLeft == nil {
		return
	}
	times := "once"
	if n := *k.Renewals; n > 1 {
		times = fmt.Sprintf("%d times, each", n)
	}
	t.step(time.Time{}, Renewed, r, "Replica %s renewed the lock %s with at least %s to spare.", r.Replica, times, span(*k.LeastLeft)).Replica = r.Replica
}
