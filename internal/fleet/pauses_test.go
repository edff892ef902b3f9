package fleet

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
)

// span is a part of the database's time that lies within a pause for certain: from the end of one command to the start of
// another one.
type span struct{ from, until time.Time }

func (s span) has(at time.Time) bool { return at.After(s.from) && at.Before(s.until) }

// inPause lets a command pause, does something for a while, and lets another command resume.
func (f *Fleet) inPause(pause, resume []string, meanwhile func()) span {
	f.tb.Helper()
	code, out := f.Cronlatch(pause...)
	require.Zero(f.tb, code, out)
	s := span{from: f.now()}
	meanwhile()
	pass(f.tb, boottime.Now()+5*time.Second)
	s.until = f.now()
	code, out = f.Cronlatch(resume...)
	require.Zero(f.tb, code, out)
	return s
}

// One job is paused and resumed, then all are, in the middle of schedules that are due every second on three replicas.
func TestNothingStartsInAPause(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		list := shortJobs(6)
		list = append(list, Job{Name: "by hand"})
		f := New(t, url, Settings{Jobs: list})
		for _, name := range []string{"a", "b", "c"} {
			f.StartReady(name)
		}
		until(t, "all have run", patience, func() bool { return f.ran(list[:6], time.Time{}) })
		begin := f.planning()
		var manual, other jobs.Run
		one := f.inPause([]string{"jobs", "pause", "short-00", "--reason", "disk"}, []string{"jobs", "resume", "short-00"}, func() {
			until(t, "what ran is over", patience, func() bool { return f.count(`job = 'short-00' AND state = 'running'`) == 0 })
			manual = f.WaitFinished(f.Trigger("short-00").ID)
		})
		until(t, "it runs again", patience, func() bool { return f.ran(list[:1], one.until) })
		all := f.inPause([]string{"pause-all"}, []string{"resume-all"}, func() { other = f.WaitFinished(f.Trigger("by hand").ID) })
		until(t, "they run again", patience, func() bool { return f.ran(list[:6], all.until) })
		w := f.window(begin)
		h := f.Rest()
		assert.Equal(t, []jobs.Outcome{jobs.OutcomeSucceeded, jobs.OutcomeSucceeded}, []jobs.Outcome{manual.Outcome, other.Outcome})
		require.NoError(t, check.Calendar(h.Runs, schedules(list), w))
		paused := 0
		for _, r := range h.Runs {
			mine := all
			if r.Job == "short-00" && one.has(r.ScheduledAt) {
				mine = one
			}
			if r.Trigger == jobs.TriggerManual {
				continue
			}
			if r.StartedAt != nil {
				assert.False(t, all.has(*r.StartedAt) || r.Job == "short-00" && one.has(*r.StartedAt),
					"run %d of %s started at %s", r.ID, r.Job, r.StartedAt)
			}
			if mine.has(r.ScheduledAt) {
				paused++
				assertPaused(t, &r, mine == all)
			} else if r.Reason == jobs.ReasonPaused {
				assert.True(t, near(r.ScheduledAt, one) || near(r.ScheduledAt, all), "run %d of %s at %s", r.ID, r.Job, r.ScheduledAt)
			}
		}
		assert.GreaterOrEqual(t, paused, 4+6*4, "every instant of the pauses is in the ledger")
	})
}

// ran reports whether each job has started by its schedule after an instant.
func (f *Fleet) ran(list []Job, after time.Time) bool {
	f.tb.Helper()
	started := map[string]bool{}
	for _, r := range f.Runs() {
		if r.StartedAt != nil && r.StartedAt.After(after) && r.Trigger != jobs.TriggerManual {
			started[r.Job] = true
		}
	}
	for _, j := range list {
		if !started[j.Name] {
			return false
		}
	}
	return true
}

// near: the commands take a moment, in which an instant may fall due.
func near(at time.Time, s span) bool {
	return span{s.from.Add(-onTime), s.until.Add(onTime)}.has(at)
}

func assertPaused(t *testing.T, r *jobs.Run, all bool) {
	t.Helper()
	assert.Equal(t, []any{jobs.OutcomeMissed, jobs.ReasonPaused}, []any{r.Outcome, r.Reason}, "run %d of %s at %s", r.ID, r.Job, r.ScheduledAt)
	var facts struct {
		Pause struct{ Job, By, Reason string }
	}
	require.NoError(t, json.Unmarshal(r.Detail, &facts))
	assert.Contains(t, facts.Pause.By, "@")
	if all {
		assert.Equal(t, []string{"", ""}, []string{facts.Pause.Job, facts.Pause.Reason})
	} else {
		assert.Equal(t, []string{"short-00", "disk"}, []string{facts.Pause.Job, facts.Pause.Reason})
	}
}
