package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
)

// backups are nightly; one failed and was retried, one was lost with its replica and taken over, one was missed while no
// replica was there, and one that was started by hand was cancelled.
func (h *history) backups(j *jobs.Job, at []time.Time) {
	rest := h.outages(j, at)
	for i, t := range rest {
		took := h.between(6*time.Minute, 11*time.Minute)
		e := h.usual(j.ScheduledRun(t), took)
		e.output = "dumping orders\ndumping customers\ndone: 2 tables\n"
		switch {
		case h.crash.has(t.Add(5 * time.Minute)):
			h.lostWithReplica(e, took)
		case i == len(rest)/4:
			h.failed(e, 1, "dumping orders\npg_dump: error: could not write: No space left on device\n", took)
		}
		if i == len(rest)/2 {
			h.cancelled(j, t.Add(7*time.Hour+13*time.Minute))
		}
	}
}

// lostWithReplica lets the replica of a backup be killed, and another one take over.
func (h *history) lostWithReplica(e *entry, took time.Duration) {
	e.by = h.replica(h.crashed, h.crash.From.Add(-time.Second))
	lost := h.crash.From.Add(lockTTL + 400*time.Millisecond)
	e.exitCode, e.output = nil, ""
	e.end(jobs.OutcomeLost, jobs.ReasonReplicaLost, lost)
	n, ok := e.run().NextAttempt(lost)
	if !ok {
		return
	}
	next := h.again(n, lost, took)
	next.output = "dumping orders\ndumping customers\ndone: 2 tables\n"
	e.facts = map[string]any{"replica": e.by.Name, "recovered_by": next.by.Name}
	h.notes = append(h.notes,
		note{
			at: lost, action: string(audit.RunLose), actorType: string(audit.ActorReplica), actor: next.by.Name, replica: next.by.Name,
			reason: string(jobs.ReasonReplicaLost), job: e.Job, run: e, facts: e.facts,
		},
		note{
			at: next.started, action: string(audit.LockTakeover), actorType: string(audit.ActorReplica), actor: next.by.Name,
			replica: next.by.Name, reason: "the previous owner's lock had expired", job: e.Job, run: next,
		})
}

// failed lets a run fail, and its retry succeed.
func (h *history) failed(e *entry, code int, output string, took time.Duration) {
	n, ok := e.run().RetryAttempt(e.finished)
	if !ok || n.DueAt.Add(2*time.Second).After(h.now) { // the retry would lie in the future
		return
	}
	e.output = output
	e.exit(code, e.finished)
	h.again(n, e.finished, took)
}

// cancelled is a run that somebody started by mistake.
func (h *history) cancelled(j *jobs.Job, at time.Time) {
	n := jobs.ManualRun(jobs.TriggerRequest{Job: j, RequestID: fmt.Sprintf("demo-%d", at.Unix()), RequestedBy: person}, at)
	e := h.usual(n, 42*time.Second)
	e.exitCode, e.output, e.cancel = nil, "dumping orders\n", jobs.ReasonRequested
	e.facts = map[string]any{"requested_by": person, "reason": "started by mistake"}
	e.end(jobs.OutcomeCancelled, jobs.ReasonRequested, e.finished)
	h.notes = append(h.notes,
		note{at: e.created, action: string(audit.RunTrigger), actorType: string(audit.ActorUser), actor: person, job: j.Name, run: e},
		note{
			at: e.finished.Add(-time.Second), action: string(audit.RunCancel), actorType: string(audit.ActorUser), actor: person,
			reason: "started by mistake", job: j.Name, run: e, facts: map[string]any{"state": jobs.StateRunning},
		})
}

// syncs are many and short. Now and then one takes so long that the next one is skipped, and rarely one takes for ever.
func (h *history) syncs(j *jobs.Job, at []time.Time) {
	var busy *entry
	rest := h.outages(j, at)
	for i, t := range rest {
		if busy != nil && busy.finished.After(t.Add(time.Second)) {
			h.skipped(j, t, busy)
			continue
		}
		took := h.between(1050*time.Millisecond, 4*time.Second)
		calm := i > 0 && i+3 < len(rest) && !h.outage.meets(around(t)) && !h.crash.meets(around(t))
		slow, stuck := calm && h.oneIn(3000), calm && h.oneIn(12_000) || i == len(rest)/3
		switch {
		case stuck:
			took = 2*time.Minute + 300*time.Millisecond
		case slow:
			took = h.between(64*time.Second, 95*time.Second)
		}
		e := h.usual(j.ScheduledRun(t), took)
		e.output = fmt.Sprintf("fetched %02d orders\n", e.started.Second())
		if stuck {
			e.exitCode = nil
			e.end(jobs.OutcomeTimedOut, jobs.ReasonTimeout, e.finished)
		}
		if busy = nil; slow || stuck {
			busy = e
		}
	}
}

func around(t time.Time) span { return span{t.Add(-5 * time.Minute), t.Add(5 * time.Minute)} }

func (h *history) skipped(j *jobs.Job, at time.Time, because *entry) {
	created := h.atMost(at.Add(h.between(2*time.Millisecond, 40*time.Millisecond)))
	e := &entry{NewRun: j.ScheduledRun(at), created: created, blockedBy: because}
	e.end(jobs.OutcomeSkipped, jobs.ReasonOverlap, h.atMost(created.Add(30*time.Millisecond)))
	h.entries = append(h.entries, e)
}

// indexes take a little longer than it is to the next instant: each waits for the one before it, a little longer every time,
// until a second one would wait and is skipped. The one that has not ended by now was cancelled, for the first run of the demo.
func (h *history) indexes(j *jobs.Job, at []time.Time) {
	var last *entry
	for _, t := range at {
		if last != nil && (last.started.After(t) || last.cancel != "") {
			h.skipped(j, t, last)
			continue
		}
		took := h.between(60_100*time.Millisecond, 60_400*time.Millisecond)
		e := h.usual(j.ScheduledRun(t), took)
		if last != nil && !e.started.After(last.finished) {
			e.started = h.atMost(last.finished.Add(h.between(5*time.Millisecond, 300*time.Millisecond)))
			e.exit(0, h.atMost(e.started.Add(took)))
			e.by = h.anybody(span{e.started, e.finished})
		}
		if took-e.finished.Sub(e.started) > time.Second {
			e.exitCode, e.cancel = nil, jobs.ReasonRequested
			e.facts = map[string]any{"requested_by": "demo", "reason": "the demo begins"}
			e.end(jobs.OutcomeCancelled, jobs.ReasonRequested, e.finished)
		}
		last = e
	}
}

// indexOutput is what the job's command prints in a time.
func indexOutput(token int64, attempt int, in time.Duration) string {
	const each = 5 * time.Second
	var b strings.Builder
	fmt.Fprintf(&b, "token %d, attempt %d\n", token, attempt)
	for i := range min(int(in/each), indexShards) {
		fmt.Fprintf(&b, "shard %d of %d\n", i+1, indexShards)
	}
	return b.String()
}

// cleanups were paused for a day.
func (h *history) cleanups(j *jobs.Job, at []time.Time) {
	const why = "the new file server is being filled"
	for _, t := range h.outages(j, at) {
		if !h.pause.has(t) {
			h.usual(j.ScheduledRun(t), h.between(10*time.Millisecond, 300*time.Millisecond)).output = "nothing is older than a day\n"
			continue
		}
		e := &entry{NewRun: j.EndedRun(t, jobs.OutcomeMissed, jobs.ReasonPaused, nil), created: t, finished: t}
		e.facts = map[string]any{"pause": map[string]any{
			"job": j.Name, "by": person, "reason": why, "from": h.pause.From, "until": h.pause.Until,
		}}
		h.entries = append(h.entries, e)
	}
	h.notes = append(h.notes,
		note{at: h.pause.From, action: string(audit.JobPause), actorType: string(audit.ActorUser), actor: person, job: j.Name, reason: why},
		note{at: h.pause.Until, action: string(audit.JobResume), actorType: string(audit.ActorUser), actor: person, job: j.Name})
}

// partners ask an API that is not always there; sometimes not for the retry either.
func (h *history) partners(j *jobs.Job, at []time.Time) {
	for _, t := range h.outages(j, at) {
		e := h.usual(j.ScheduledRun(t), h.between(200*time.Millisecond, 3*time.Second))
		e.output = "200\n"
		if !h.oneIn(14) || h.outage.meets(around(t)) || h.crash.meets(around(t)) {
			continue
		}
		h.failed(e, 3, "503 from the partner\n", time.Second)
		last := h.entries[len(h.entries)-1]
		if last != e && h.oneIn(5) {
			last.output = "503 from the partner\n"
			last.exit(3, last.finished)
		}
	}
}
