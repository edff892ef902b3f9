package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
)

// block is something that keeps a run from starting.
type block struct {
	text   string // a clause
	kind   Kind
	run    *jobs.Run // that is in the way; may be nil
	reason jobs.Reason
	next   string // what to type; may be empty
}

// blocks are what keeps a pending run from starting now, what decides first.
func (t *teller) blocks(r *jobs.Run) []block {
	list := []block{}
	manual := strings.HasPrefix(r.Occurrence, jobs.ManualOccurrence(""))
	if p := t.pauseAt(t.f.Now); p != nil && !manual {
		list = append(list, t.pauseBlock(p))
	}
	if r.OncePer == jobs.OncePerResource && t.f.DoneBy != 0 && !manual {
		list = append(list, block{
			text: fmt.Sprintf("run %d has succeeded with the resource %s, so it is skipped (once_per: resource)", t.f.DoneBy, r.Resource),
			kind: Future, reason: jobs.ReasonOncePer,
		})
	}
	if r.Overlap != jobs.RuleAllow {
		list = append(list, t.earlier(r)...)
	}
	if l := t.lockOf(r.Resource); l != nil && !t.isOurs(l) {
		list = append(list, t.lockBlock(l))
	}
	list = append(list, t.full(r.Limits)...)
	return append(list, t.fleet(r.OnlyOn)...)
}

// pauseAt is the pause that covers an instant, nil when there is none.
func (t *teller) pauseAt(at time.Time) *Pause {
	for i := range t.f.Pauses {
		if t.f.Pauses[i].covers(at) {
			return &t.f.Pauses[i]
		}
	}
	return nil
}

func (t *teller) pauseBlock(p *Pause) block {
	next := "cronlatch jobs resume " + quoted(t.f.Job)
	if p.Job == "" {
		next = "cronlatch resume-all"
	}
	return block{text: t.pauseText(p, "is"), kind: Blocked, reason: jobs.ReasonPaused, next: next}
}

// earlier are the unfinished runs of the job that this one waits for.
func (t *teller) earlier(r *jobs.Run) (list []block) {
	for i := range t.f.Unfinished {
		u := &t.f.Unfinished[i]
		before := u.ScheduledAt.Before(r.ScheduledAt) || u.ScheduledAt.Equal(r.ScheduledAt) && u.ID < r.ID
		if u.ID == r.ID || !before && u.State != jobs.StateRunning || u.State == jobs.StatePending && u.Backfilled() && !r.Backfilled() {
			continue
		}
		text := fmt.Sprintf("run %d of the job has not ended (%s)", u.ID, t.standing(u))
		switch {
		case r.Overlap == jobs.RuleReplace && u.CancelReason != "":
			text += ", and was asked to end"
		case r.Overlap == jobs.RuleReplace && u.State == jobs.StateHeld:
			text += ", and a person decides about it"
		}
		list = append(list, block{text: text, kind: Blocked, run: u, reason: jobs.ReasonOverlap})
	}
	return list
}

// isOurs says whether a lock is that of an unfinished run of this job, of which is told anyway.
func (t *teller) isOurs(l *Lock) bool {
	return slices.ContainsFunc(t.f.Unfinished, func(r jobs.Run) bool { return r.FencingToken == l.Token && r.Resource == l.Resource })
}

func (t *teller) lockBlock(l *Lock) block {
	m := read(l.Metadata)
	text := fmt.Sprintf("the lock of %s is held by %s since %s, until %s unless it is renewed",
		l.Resource, holder(m), stamp(l.Since), stamp(l.Until))
	return block{
		text: withRest(text, m), kind: Blocked, reason: jobs.ReasonLockHeld, next: "cronlatch locks show " + quoted(l.Resource),
	}
}

func (t *teller) full(limits map[string]int) (list []block) {
	for _, tag := range slices.Sorted(maps.Keys(limits)) {
		if t.f.Used[tag] < limits[tag] {
			continue
		}
		name := "the limit of the tag " + tag
		if strings.HasPrefix(tag, jobs.BackfillLimit) {
			name = "the backfill's concurrency"
		}
		list = append(list, block{
			text: fmt.Sprintf("%s is reached: %d of %d run", name, t.f.Used[tag], limits[tag]), kind: Blocked, reason: jobs.ReasonLimit,
			next: "cronlatch runs list --state running",
		})
	}
	return list
}

// fleet is what the replicas have to say.
func (t *teller) fleet(only jobs.Labels) []block {
	const show = "cronlatch replicas list"
	if len(t.f.Replicas) == 0 {
		text := "no replica is there"
		if !t.f.SeenAt.IsZero() {
			text += "; one was last heard of at " + stamp(t.f.SeenAt)
		}
		return []block{{text: text, kind: Blocked, reason: jobs.ReasonNoReplica, next: "cronlatch serve"}}
	}
	fitting, open, room := 0, 0, 0
	have := []string{}
	for _, r := range t.f.Replicas {
		have = append(have, fmt.Sprintf("%s (%s)", r.Name, labels(r.Labels)))
		if !only.Match(r.Labels) {
			continue
		}
		fitting++
		if r.Draining {
			continue
		}
		open++
		if r.Running < r.Capacity {
			room++
		}
	}
	switch {
	case fitting == 0:
		return []block{{
			text: fmt.Sprintf("no replica has the labels that only_on asks for (%s); there are %s", wanted(only), list(have)),
			kind: Blocked, reason: jobs.ReasonNoMatchingReplica, next: show,
		}}
	case open == 0:
		return []block{{
			text: "every replica that may run it takes no more runs (drain)",
			kind: Blocked, reason: jobs.ReasonNoCapacity, next: show,
		}}
	case room == 0:
		return []block{{
			text: "every replica that may run it has as many runs as it has capacity for",
			kind: Blocked, reason: jobs.ReasonNoCapacity, next: show,
		}}
	}
	return nil
}

// tellBlocks adds a step for each.
func (t *teller) tellBlocks(list []block) {
	for _, b := range list {
		if slices.ContainsFunc(t.s.Steps, func(s Step) bool { return s.Text == output.Clean(sentence(b.text)) }) {
			continue // it is in the way twice
		}
		t.step(time.Time{}, b.kind, b.run, "%s", sentence(b.text)).Reason = b.reason
		if b.next != "" {
			t.next("%s", b.next)
		}
	}
}

// pending tells of a run that has not started: what it waits for, and what happens when that takes too long.
func (t *teller) pending(r *jobs.Run) {
	if r.DueAt.After(t.f.Now) {
		t.step(r.DueAt, Future, r, "It becomes due, and the first replica with a free slot takes it.")
	}
	t.tellBlocks(t.blocks(r))
	if r.StartBy != nil {
		t.step(*r.StartBy, Future, r, "If run %d has not started by then, it is missed (start_deadline).", r.ID)
	}
}

// aboutTheFuture tells when the job runs next, and what could stop that.
func (t *teller) aboutTheFuture() {
	j := t.f.Definition
	switch {
	case j == nil:
		t.step(time.Time{}, Hint, nil, "The job is not defined here: when it runs next is not known.")
	case !j.Enabled:
		t.step(time.Time{}, Future, nil,
			"The job is disabled (enabled: false): no run of it starts, and what falls due is recorded as skipped, until the file says enabled: true.").Reason = jobs.ReasonDisabled
	case len(j.After) > 0:
		t.afterOthers(j)
	case j.Schedule == nil:
		t.step(time.Time{}, Future, nil, "The job has no schedule: it runs when somebody asks for it.")
		t.next("cronlatch run %s", quoted(j.Name))
	default:
		t.nextInstant(j)
	}
}

func (t *teller) nextInstant(j *jobs.Job) {
	at := j.Schedule.Next(t.f.Now)
	if at.IsZero() {
		t.step(time.Time{}, Future, nil, "Its schedule has no further instant%s.", limits(j))
		return
	}
	due := ""
	if d := j.DueAt(at); d.After(at) {
		due = fmt.Sprintf(", due at %s by jitter", stamp(d))
	}
	t.step(at, Future, nil, "It falls due next at %s%s, in %s.", t.instant(at), due, span(at.Sub(t.f.Now)))
	t.unplannedSchedule()
	if p := t.pauseAt(at); p != nil {
		b := t.pauseBlock(p)
		t.step(time.Time{}, Blocked, nil, "%s That instant will be missed, if nobody resumes it.", sentence(b.text)).Reason = b.reason
		t.next("%s", b.next)
	} else if p := t.pauseAt(t.f.Now); p != nil {
		t.step(p.Until, Future, nil, "The pause ends before that: %s.", t.pauseText(p, "is"))
	}
	t.overlapAhead(j)
	if l := t.lockOf(j.Resource.At(at)); l != nil && !t.isOurs(l) {
		t.tellBlocks([]block{t.lockBlock(l)})
	}
	t.tellBlocks(t.full(j.Limits))
	t.tellBlocks(t.fleet(j.OnlyOn))
	if j.StartDeadline > 0 {
		by := j.DueAt(at).Add(j.StartDeadline)
		t.step(by, Future, nil, "If that instant has not started by then, it is missed (start_deadline: %s).", span(j.StartDeadline))
	}
	t.next("cronlatch next %s", quoted(j.Name))
}

func limits(j *jobs.Job) string {
	if text := j.Schedule.Limits(); text != "" {
		return " (" + text + ")"
	}
	return ""
}

// never is the verdict about a job without a run.
func (t *teller) never() {
	j := t.f.Definition
	switch {
	case j == nil || len(j.After) > 0:
		t.verdict("%s has never run.", t.f.Job)
		return
	case !j.Enabled:
		t.verdict("%s has never run: it is disabled (enabled: false).", j.Name)
		return
	case j.Schedule == nil:
		t.verdict("%s has never run: it has no schedule, and nobody has asked for it.", j.Name)
		return
	}
	at := j.Schedule.Next(t.f.Now)
	switch p := t.pauseAt(at); {
	case at.IsZero():
		t.verdict("%s has never run, and its schedule has no further instant.", j.Name)
	case p != nil:
		t.verdict("%s has never run: %s.", j.Name, t.pauseText(p, "is"))
	default:
		blocks := append(t.full(j.Limits), t.fleet(j.OnlyOn)...)
		if l := t.lockOf(j.Resource.At(at)); l != nil && !t.isOurs(l) {
			blocks = append([]block{t.lockBlock(l)}, blocks...)
		}
		text := ""
		if len(blocks) > 0 {
			text = "; as it is now it would not start then: " + blocks[0].text
		}
		t.verdict("%s has never run: it falls due first at %s%s.", j.Name, t.instant(at), text)
	}
}

// unplannedSchedule says that no replica has the schedule that this process has.
func (t *teller) unplannedSchedule() {
	if slices.ContainsFunc(t.f.Positions, func(p Position) bool { return p.Current }) {
		return
	}
	text := "No replica has planned this schedule yet: it is planned from when the first one has loaded it."
	if len(t.f.Positions) > 0 {
		text = "No replica has planned the schedule as it is defined here; they have another one." +
			" It is planned from when the first one has loaded it."
	}
	t.step(time.Time{}, Blocked, nil, "%s", text)
	t.next("cronlatch reload")
}

// overlapAhead says what unfinished runs do to the next instant.
func (t *teller) overlapAhead(j *jobs.Job) {
	ahead := []*jobs.Run{}
	for i := range t.f.Unfinished {
		if u := &t.f.Unfinished[i]; (u.State != jobs.StatePending || !u.Backfilled()) && !t.expired(u) {
			ahead = append(ahead, u)
		}
	}
	for _, u := range ahead {
		what := ""
		switch j.Overlap {
		case jobs.OverlapSkip:
			what = "if it has not ended by then, that instant is skipped (overlap: skip)"
		case jobs.OverlapQueue:
			what = "if it has not ended by then, that instant waits for it, and only one may wait (overlap: queue)"
			if len(ahead) > 1 {
				what = fmt.Sprintf("if %d runs have not ended by then, that instant is skipped, because only one may wait (overlap: queue)", len(ahead))
			}
		case jobs.OverlapReplace:
			what = "if it has not ended by then, it is cancelled (overlap: replace)"
			if u.State == jobs.StateHeld {
				what = "that instant waits until a person has decided about it"
			}
		case jobs.OverlapAllow:
			continue
		}
		t.step(time.Time{}, Future, u, "Run %d is %s: %s.", u.ID, t.standing(u), what).Reason = jobs.ReasonOverlap
	}
}

// afterOthers is for a job that comes after others.
func (t *teller) afterOthers(j *jobs.Job) {
	names := []string{}
	for _, a := range j.After {
		names = append(names, fmt.Sprintf("%s (on: %s)", a.Job, a.On))
	}
	t.step(time.Time{}, Future, nil, "It has no schedule of its own: it runs after %s.", list(names))
	for i := range t.f.Upstream {
		u := &t.f.Upstream[i]
		if u.State == jobs.StateFinished {
			t.step(time.Time{}, Hint, u, "The newest run of %s is run %d for %s: %s.", u.Job, u.ID, stamp(u.ScheduledAt), t.standing(u))
		} else {
			t.step(time.Time{}, Waiting, u, "It waits for run %d of %s for %s: %s.", u.ID, u.Job, stamp(u.ScheduledAt), t.standing(u))
		}
	}
	if p := t.pauseAt(t.f.Now); p != nil {
		t.tellBlocks([]block{t.pauseBlock(p)})
	}
	t.tellBlocks(t.full(j.Limits))
	t.tellBlocks(t.fleet(j.OnlyOn))
	for _, a := range j.After {
		t.next("cronlatch explain %s", quoted(a.Job))
	}
}

// typeForRun says what helps with a run.
func (t *teller) typeForRun(r *jobs.Run) {
	if r.StartedAt != nil {
		follow := ""
		if r.State == jobs.StateRunning && !t.expired(r) {
			follow = " -f"
		}
		t.next("cronlatch logs %d%s", r.ID, follow)
	}
	last := &t.f.Attempts[len(t.f.Attempts)-1]
	disabled := t.f.Definition != nil && !t.f.Definition.Enabled // a retry would be refused
	if !disabled && (last.State == jobs.StateHeld || last.State == jobs.StateFinished && last.Outcome != jobs.OutcomeSucceeded && summary(last) == "") {
		t.next("cronlatch runs retry %d", last.ID)
	}
	if r.State == jobs.StateRunning && !t.expired(r) {
		t.next("cronlatch runs cancel %d", r.ID)
	}
	d := read(r.Detail)
	if id := d.number("unfinished_run"); id > 0 {
		t.next("cronlatch explain %d", id)
	}
	if r.Reason == jobs.ReasonLockHeld {
		t.next("cronlatch locks show %s", quoted(r.Resource))
	}
	for _, f := range r.Follows.Runs {
		t.next("cronlatch explain %d", f.RunID)
	}
	if from, until, _, ok := Summary(r); ok && !strings.HasPrefix(r.Occurrence, jobs.ManualOccurrence("")) {
		t.next("cronlatch jobs backfill %s --from %s --until %s", quoted(r.Job), from.UTC().Format(time.RFC3339),
			until.UTC().Format(time.RFC3339))
	}
}
