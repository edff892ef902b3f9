package fleet

import (
	"crypto/rand"
	"os"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// Trigger puts a manual run of a job into the ledger.
func (f *Fleet) Trigger(job string) jobs.Run {
	f.tb.Helper()
	config, err := configs.Load(f.config(), configs.Options{Getenv: os.Getenv})
	f.must(err)
	definition, err := config.Job(job)
	f.must(err)
	actions, err := scheduler.OpenActions(f.DB.Main)
	f.must(err)
	request := scheduler.StartRequest{Job: definition, RequestID: rand.Text(), By: "test"}
	var run jobs.Run
	until(f.tb, "the database takes the run", patience, func() bool {
		run, _, err = actions.Start(f.tb.Context(), request)
		if !database.Retryable(err) {
			f.must(err)
		}
		return err == nil
	})
	return run
}

// WaitRun waits until the row of a run is as it should be, and returns it.
func (f *Fleet) WaitRun(id int64, what string, good func(r *jobs.Run) bool) jobs.Run {
	f.tb.Helper()
	var run jobs.Run
	until(f.tb, what, patience, func() bool {
		var err error
		run, err = f.Ledger.Get(f.tb.Context(), id)
		return err == nil && good(&run)
	})
	return run
}

// WaitFinished waits until a run has its outcome.
func (f *Fleet) WaitFinished(id int64) jobs.Run {
	f.tb.Helper()
	return f.WaitRun(id, "the run has an outcome", func(r *jobs.Run) bool { return r.State == jobs.StateFinished })
}

// WaitAttempt waits until an occurrence has an attempt with a number.
func (f *Fleet) WaitAttempt(of jobs.Run, attempt int) jobs.Run {
	f.tb.Helper()
	var found jobs.Run
	until(f.tb, "the next attempt is in the ledger", patience, func() bool {
		runs, err := f.runs()
		i := slices.IndexFunc(runs, func(r jobs.Run) bool {
			return r.Job == of.Job && r.Occurrence == of.Occurrence && r.Attempt == attempt
		})
		if err != nil || i < 0 {
			return false
		}
		found = runs[i]
		return true
	})
	return found
}

// WaitAlive waits until a process of the run with the given role has shown that it is alive, and returns the run.
func (f *Fleet) WaitAlive(id int64, role string) jobs.Run {
	f.tb.Helper()
	until(f.tb, "the job shows that it is alive: "+role, patience, func() bool {
		return slices.ContainsFunc(f.Events(), func(e record.Event) bool {
			return e.Run == id && e.Role == role && e.Kind == record.Alive
		})
	})
	run, err := f.Ledger.Get(f.tb.Context(), id)
	f.must(err)
	return run
}

// WaitVictim waits until one of the candidates runs the job and a process with the role is alive; it returns both.
func (f *Fleet) WaitVictim(job, role string, candidates ...*Replica) (*Replica, jobs.Run) {
	f.tb.Helper()
	var victim *Replica
	var run jobs.Run
	until(f.tb, "a replica runs "+job, patience, func() bool {
		events := f.Events()
		for _, r := range f.Runs() {
			i := slices.IndexFunc(candidates, func(c *Replica) bool { return c.Name == r.Replica })
			if r.Job != job || r.State != jobs.StateRunning || i < 0 || !fresh(events, r.ID, role) {
				continue
			}
			victim, run = candidates[i], r
			return true
		}
		return false
	})
	return victim, run
}

// fresh: the job has begun a moment ago, so that it is still there when the fault comes.
func fresh(events []record.Event, id int64, role string) bool {
	var beats int
	for _, e := range events {
		if e.Run == id && e.Role == role && e.Kind == record.Alive {
			beats++
		}
	}
	return beats > 0 && time.Duration(beats)*record.Beat < time.Second
}

// LastSign is the last sign of life of a run on the boot clock, 0 when there was none.
func (f *Fleet) LastSign(id int64) (last time.Duration) {
	for _, e := range f.Events() {
		if e.Run == id {
			last = max(last, e.Boot)
		}
	}
	return last
}

// Others are all replicas but one.
func (f *Fleet) Others(than *Replica) []*Replica {
	return slices.DeleteFunc(f.Replicas(), func(r *Replica) bool { return r == than })
}
