package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
)

// What somebody hears of is decided here, without a database; notify_store.go is the transaction around it.

// PingChannel is the channel of the pings of jobs: they go to the job's own URL. No channel of a configuration has such a name.
const PingChannel = "(ping)"

// PingWait is how long the ping that a run has ended waits at least: that it has begun, which another replica may be telling,
// comes first.
const PingWait = time.Second

// The events of PingChannel.
const (
	PingSuccess jobs.Event = "success"
	PingFail    jobs.Event = "fail"
)

// Message is one event as a channel hears of it. Its JSON is what webhooks get, and what the outbox keeps.
type Message struct {
	ID          string          `json:"id"` // the same however often it is sent
	Event       jobs.Event      `json:"event"`
	Job         string          `json:"job"`
	RunID       int64           `json:"run_id,omitempty"`
	Occurrence  string          `json:"occurrence,omitempty"`
	ScheduledAt *time.Time      `json:"scheduled_at,omitempty"`
	Attempt     int             `json:"attempt,omitempty"`
	Outcome     jobs.Outcome    `json:"outcome,omitempty"`
	Reason      jobs.Reason     `json:"reason,omitempty"`
	Detail      json.RawMessage `json:"detail,omitempty"`
	Replica     string          `json:"replica,omitempty"`
	Text        string          `json:"text"` // one sentence
}

// trouble is the last bad news of a job since its last success; nil is none.
type trouble struct {
	event jobs.Event
	run   int64
	since time.Time
}

// happening is what one run that has ended means for those who listen.
type happening struct {
	events []jobs.Event
	ping   jobs.Event // "" is none
	// now is the job's trouble from here on.
	now *trouble
}

// happened decides what a run that has ended means. again says that another attempt came after it, whatever has become of
// that; before is the job's trouble until now.
func happened(j *jobs.Job, r *jobs.Run, again bool, before *trouble) happening {
	h := happening{now: before}
	if isLate(j, r) {
		h.events = append(h.events, jobs.EventLate)
	}
	bad := func(e jobs.Event) {
		h.events = append(h.events, e)
		h.now = &trouble{event: e, run: r.ID, since: r.ScheduledAt}
	}
	switch {
	case again && held(r):
		bad(jobs.EventLost)
		h.ping = PingFail
	case again: // the attempt after it is what counts
	case r.Outcome == jobs.OutcomeSucceeded:
		h.ping = PingSuccess
		if before != nil {
			h.events = append(h.events, jobs.EventRecovery)
		}
		h.now = nil
	case r.Outcome == jobs.OutcomeFailed || r.Outcome == jobs.OutcomeTimedOut:
		bad(jobs.EventFailure)
		h.ping = PingFail
	case r.Outcome == jobs.OutcomeLost:
		bad(jobs.EventLost)
		h.ping = PingFail
	case r.Outcome == jobs.OutcomeMissed && r.Reason != jobs.ReasonPaused: // a pause is somebody's wish
		bad(jobs.EventMissed)
	}
	return h
}

// held says of a run after which another attempt came that this one waits for a person.
func held(r *jobs.Run) bool {
	return r.OnLost == jobs.OnLostHold && (r.Outcome == jobs.OutcomeLost || r.Outcome == jobs.OutcomeCancelled && r.Reason == jobs.ReasonDrain)
}

// isLate says that a run has begun later than it may. Only the first attempt at an occurrence has an instant to be late
// for; a run by hand and one of a backfill have none.
func isLate(j *jobs.Job, r *jobs.Run) bool {
	return j.LateAfter > 0 && mayBeLate(r) && r.StartedAt != nil && r.StartedAt.Sub(r.ScheduledAt) > j.LateAfter
}

func mayBeLate(r *jobs.Run) bool {
	return r.Attempt == 1 && r.Trigger != jobs.TriggerBackfill && !strings.HasPrefix(r.Occurrence, jobs.ManualOccurrence(""))
}

// outgoing is a row of the outbox that is to be.
type outgoing struct {
	Key     string     `json:"key"` // there is one row with it, whoever inserts how often
	Channel string     `json:"channel"`
	Event   jobs.Event `json:"event"`
	Job     string     `json:"job"`
	RunID   *int64     `json:"run_id"`
	Payload Message    `json:"payload"`
	Wait    int64      `json:"wait"` // milliseconds until it may be sent
}

// toChannels is one row for each channel that hears of the event.
func toChannels(channels []string, about string, m Message) []outgoing {
	rows := make([]outgoing, 0, len(channels))
	for _, name := range channels {
		o := outgoing{Key: fmt.Sprintf("%s:%s:%s", m.Event, about, name), Channel: name, Event: m.Event, Job: m.Job, Payload: m}
		if m.RunID != 0 {
			o.RunID = &m.RunID
		}
		o.Payload.ID = NewMessageID()
		rows = append(rows, o)
	}
	return rows
}

// messagesOf are the rows for what has happened with a run.
func messagesOf(j *jobs.Job, r *jobs.Run, h happening, before *trouble) []outgoing {
	about := strconv.FormatInt(r.ID, 10)
	var rows []outgoing
	for _, e := range h.events {
		rows = append(rows, toChannels(j.Notify[e], about, messageOf(j, r, e, before))...)
	}
	if j.Ping != "" && h.ping != "" {
		end := toChannels([]string{PingChannel}, about, messageOf(j, r, h.ping, nil))
		end[0].Wait = PingWait.Milliseconds()
		rows = append(rows, end...)
	}
	return rows
}

func messageOf(j *jobs.Job, r *jobs.Run, e jobs.Event, before *trouble) Message {
	return Message{
		Event: e, Job: r.Job, RunID: r.ID, Occurrence: r.Occurrence, ScheduledAt: &r.ScheduledAt, Attempt: r.Attempt, Outcome: r.Outcome,
		Reason: r.Reason, Detail: r.Detail, Replica: r.Replica,
		Text: sentence(j, r, e, before) + fmt.Sprintf(" (cronlatch explain %d)", r.ID),
	}
}

// sentence says what has happened.
func sentence(j *jobs.Job, r *jobs.Run, e jobs.Event, before *trouble) string {
	switch what := fmt.Sprintf("%s, scheduled for %s,", r.Job, instant(r.ScheduledAt)); e {
	case jobs.EventRecovery:
		return fmt.Sprintf("%s succeeded%s: it is well again after %s of %s", what, onReplica(r), badNews(before.event), instant(before.since))
	case jobs.EventMissed:
		return fmt.Sprintf("%s did not run: %s", what, whyMissed(r))
	case jobs.EventLost:
		if held(r) {
			return fmt.Sprintf("%s was lost%s in attempt %d: the next attempt waits for a person (cronlatch runs retry)",
				what, onReplica(r), r.Attempt)
		}
		return fmt.Sprintf("%s was lost%s in attempt %d: %s", what, onReplica(r), r.Attempt, whyLost(r.Reason))
	case jobs.EventLate:
		if r.StartedAt == nil {
			return fmt.Sprintf("%s still waits: it is late after %s", what, j.LateAfter)
		}
		return fmt.Sprintf("%s began late%s, %s after its instant", what, onReplica(r), r.StartedAt.Sub(r.ScheduledAt).Round(time.Second))
	case PingSuccess:
		return what + " succeeded"
	default:
		return fmt.Sprintf("%s failed%s in attempt %d of %d: %s",
			what, onReplica(r), r.Attempt, max(r.Attempt, r.Retry.Attempts), whyFailed(j, r))
	}
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func onReplica(r *jobs.Run) string {
	if r.Replica == "" {
		return ""
	}
	return " on replica " + r.Replica
}

// badNews is an event of trouble as the end of "after".
func badNews(e jobs.Event) string {
	switch e {
	case jobs.EventMissed:
		return "the missed run"
	case jobs.EventLost:
		return "the lost run"
	case jobs.EventOverdue:
		return "having been overdue since the success"
	default:
		return "the failure"
	}
}

func whyFailed(j *jobs.Job, r *jobs.Run) string {
	switch {
	case r.Reason == jobs.ReasonTimeout:
		return "it ran longer than its timeout of " + j.Timeout.String()
	case r.Reason == jobs.ReasonSignal:
		return "signal " + cmp.Or(r.Signal, "unknown")
	case r.Reason == jobs.ReasonStart:
		return "it could not be started"
	case r.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *r.ExitCode)
	default:
		return "reason " + string(r.Reason)
	}
}

func whyLost(reason jobs.Reason) string {
	switch reason {
	case jobs.ReasonReplicaLost:
		return "its replica is gone or was cut off, and nobody said how the run ended"
	case jobs.ReasonLeaseLost:
		return "its lock could not be renewed, and it was stopped"
	case jobs.ReasonSupervisor:
		return "the supervisor process died, and it was stopped"
	case jobs.ReasonStaleStart:
		return "it would have started after the deadline of its lock"
	default:
		return "reason " + string(reason)
	}
}

func whyMissed(r *jobs.Run) string {
	var text string
	switch r.Reason {
	case jobs.ReasonNoReplica:
		text = "no replica reached the database at its instant"
	case jobs.ReasonCatchUp:
		text = "nobody planned it in time, and catch_up did not choose it"
	case jobs.ReasonOverlap:
		text = "an earlier run of the job was unfinished until start_deadline"
	case jobs.ReasonLockHeld:
		text = "its resource was locked until start_deadline"
	case jobs.ReasonNoCapacity:
		text = "no replica had a free slot until start_deadline"
	case jobs.ReasonLimit:
		text = "the limit of a tag was reached until start_deadline"
	case jobs.ReasonNoMatchingReplica:
		text = "no replica had the labels of only_on at start_deadline"
	default:
		text = "reason " + string(r.Reason)
	}
	var many struct {
		Count int `json:"missed_count"`
	}
	if json.Unmarshal(r.Detail, &many) == nil && many.Count > 1 {
		text += fmt.Sprintf("; the same holds for %d instants in all", many.Count)
	}
	return text
}

// overdueMessage is for a job that has not succeeded for longer than its max_age.
func overdueMessage(o *overdueJob, replica string) Message {
	text := fmt.Sprintf("%s is overdue: there was no success since it was first planned, at %s", o.Job, instant(o.Since.Time))
	if o.Succeeded {
		text = fmt.Sprintf("%s is overdue: its last success was at %s", o.Job, instant(o.Since.Time))
	}
	return Message{
		Event: jobs.EventOverdue, Job: o.Job, Replica: replica, Detail: detail(map[string]any{"since": o.Since.Time, "succeeded": o.Succeeded}),
		Text: text + ", longer ago than its max_age (cronlatch explain " + o.Job + ")",
	}
}

// lateEvery is how often a replica looks for runs that are late.
const lateEvery = 10 * time.Second

// lateJob asks for the runs of a job that are late and of which a channel has not heard.
type lateJob struct {
	Job     string `json:"job"`
	After   int64  `json:"after"` // milliseconds
	Channel string `json:"channel"`
}

// latesOf are the jobs whose lateness somebody wants to hear of.
func latesOf(known []*jobs.Job) (late []lateJob) {
	for _, j := range known {
		if j.LateAfter <= 0 {
			continue
		}
		for _, channel := range j.Notify[jobs.EventLate] {
			late = append(late, lateJob{j.Name, j.LateAfter.Milliseconds(), channel})
		}
	}
	return late
}

// listenedTo are the names of the jobs that somebody listens to.
func listenedTo(known map[string]*jobs.Job) []string {
	names := []string{} // not nil, which would be JSON's null
	for name, j := range known {
		if j.Listened() {
			names = append(names, name)
		}
	}
	return names
}

// notifyDue puts into the outbox what is to be said of the runs that have ended.
func (s *Scheduler) notifyDue(ctx context.Context) error {
	for {
		more, err := s.notifySome(ctx)
		if err != nil || !more {
			return err
		}
	}
}

func (s *Scheduler) notifySome(ctx context.Context) (more bool, err error) {
	ctx, done := s.step(ctx, OpNotify)
	defer done()
	seen, err := s.store.notify(ctx, s.active.jobs)
	for i := range seen.stale {
		s.o.Log.Warn("for a day no replica has known who wants to hear of a run; nobody hears of it",
			audit.Job(seen.stale[i].Job), audit.RunID(seen.stale[i].ID))
	}
	return seen.more, err
}

// lateDue looks for late runs when it is time to.
func (s *Scheduler) lateDue(ctx context.Context) error {
	now := s.o.Boot()
	if now < s.lateAt || len(s.lates) == 0 {
		return nil
	}
	ctx, done := s.step(ctx, OpNotify)
	defer done()
	late, err := s.store.late(ctx, s.lates, s.active.jobs)
	if err != nil {
		return err
	}
	s.lateAt = now + lateEvery
	for i := range late {
		s.o.Log.Warn("a run is late", audit.Job(late[i].Job), audit.RunID(late[i].ID), zap.Time("scheduled_at", late[i].ScheduledAt))
	}
	return nil
}
