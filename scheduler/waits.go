package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// What a due run waits for is gone when somebody asks why it started late. So a replica that has looked for work, and left
// something, takes down what was in the way: once for each cause and holder, never for each look. What the ledger and the
// pauses have anyway (a running run of the same job, a pause) is not taken down.

const (
	// waitNoted is how long a run must have been due: most runs never wait that long, and cost nothing here.
	waitNoted = time.Second
	// waitsEvery is how often a replica looks, at most.
	waitsEvery = time.Second
	// waitsLook bounds a look: these are the runs that are next, and a longer backlog is that much older when they have started.
	waitsLook = 200
	// waitsEach bounds what is taken down of one run.
	waitsEach = 20
	// waitRuns is how many of the runs that were in the way are named.
	waitRuns = 5
)

// noteWaits takes down what due runs wait for.
func (s *Scheduler) noteWaits(ctx context.Context) error {
	now := s.o.Boot()
	if s.waitsAt > now {
		return nil
	}
	s.waitsAt = now + waitsEvery
	ctx, done := s.step(ctx, OpSettle)
	defer done()
	return s.store.noteWaits(ctx, &lookout{
		replica: s.o.Replica, labels: s.o.Labels, runnable: s.runnable, capacity: s.o.Capacity, free: s.o.Capacity - s.active.count(),
		after: waitNoted,
	})
}

// lookout is the replica that looks.
type lookout struct {
	replica        string
	labels         map[string]string
	runnable       func(job string) bool
	capacity, free int
	after          time.Duration // how long a run must have been due

	there   []ReplicaRow // read when a run asks for labels
	running []jobs.Run   // in the fleet, read when one is to be named
}

// wait is what a run was seen to wait for.
type wait struct {
	RunID  int64           `json:"run_id"`
	Cause  jobs.Reason     `json:"cause"`
	Holder string          `json:"holder"` // whatever makes two waits of one cause different
	SeenBy string          `json:"seen_by"`
	Detail json.RawMessage `json:"detail"`

	facts map[string]any
	names func(r *jobs.Run) bool // the running runs that are in the way; nil is none
}

// key is how the waits of one run differ.
func (w *wait) key() string { return string(w.Cause) + " " + w.Holder }

// wait is what decides first; false when nothing is known to be in the way.
func (l *lookout) wait(r *waitingRow) (w wait, ok bool, err error) {
	w = wait{RunID: r.ID, SeenBy: l.replica}
	var only jobs.Labels
	var limits map[string]int
	if err := errors.Join(json.Unmarshal(r.OnlyOn, &only), json.Unmarshal(r.Limits, &limits)); err != nil {
		return w, false, fmt.Errorf("reading what run %d asks for: %w", r.ID, err)
	}
	switch {
	case !slices.ContainsFunc(l.there, func(have ReplicaRow) bool { return only.Match(have.Labels) }) && len(only) > 0:
		w.Cause, w.facts = jobs.ReasonNoMatchingReplica, map[string]any{"only_on": only, "replicas": labelsOf(l.there)}
	case r.Earlier != nil:
		w.Cause, w.Holder = jobs.ReasonOverlap, strconv.FormatInt(*r.Earlier, 10)
		w.facts = map[string]any{"unfinished_run": *r.Earlier, "state": r.EarlierState}
	case r.HeldToken != nil:
		// The holder's owner token stays out of it: whoever knows it may release the lock.
		w.Cause, w.Holder = jobs.ReasonLockHeld, strconv.FormatInt(*r.HeldToken, 10)
		w.facts = map[string]any{"fencing_token": *r.HeldToken, "holder": map[string]any{
			"acquired_at": r.HeldSince.Time, "expires_at": r.HeldUntil.Time, "metadata": json.RawMessage(r.HeldMetadata),
		}}
	case r.FullTag != nil:
		w.Cause, w.Holder = jobs.ReasonLimit, *r.FullTag
		w.facts = map[string]any{"tag": *r.FullTag, "limit": limits[*r.FullTag]}
		w.names = func(other *jobs.Run) bool { return other.Limits[*r.FullTag] > 0 }
	case l.free < 1 && l.runnable(r.Job) && only.Match(l.labels):
		w.Cause, w.facts = jobs.ReasonNoCapacity, map[string]any{"replica": l.replica, "capacity": l.capacity}
		w.names = func(other *jobs.Run) bool { return other.Replica == l.replica }
	default:
		return w, false, nil
	}
	return w, !r.noted(&w), nil
}

// noted says that it was taken down before, or as much as there may be.
func (r *waitingRow) noted(w *wait) bool {
	if r.Noted == nil {
		return false
	}
	noted := strings.Split(*r.Noted, "\n")
	return len(noted) >= waitsEach || slices.Contains(noted, w.key())
}

// runInTheWay is a run in the facts of a wait.
type runInTheWay struct {
	RunID   int64  `json:"run_id"`
	Job     string `json:"job"`
	Replica string `json:"replica"`
}

// seal names the runs that are in the way, and makes the facts a document.
func (w *wait) seal(running []jobs.Run) {
	if w.names != nil {
		named := []runInTheWay{}
		for i := range running {
			if r := &running[i]; len(named) < waitRuns && w.names(r) {
				named = append(named, runInTheWay{r.ID, r.Job, r.Replica})
			}
		}
		w.facts["running"] = named
	}
	w.Detail = detail(w.facts)
}
