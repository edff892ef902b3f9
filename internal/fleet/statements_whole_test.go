package fleet

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// isWhole checks that the database shows the state before or after whole steps, and no state in between. A daemon that was
// killed a moment ago may have a COMMIT on its way.
func (f *Fleet) isWhole() {
	f.tb.Helper()
	var err error
	for deadline := boottime.Now() + time.Second; boottime.Now() < deadline; {
		if err = f.whole(); err == nil {
			return
		}
		pass(f.tb, boottime.Now()+poll)
	}
	f.tb.Errorf("the database is between two states:\n%v", err)
}

// whole: what was planned is what the positions say, a finished attempt has the one after it, a lock that lives has its
// running run, and the other way round, and a run whose followers were looked for has them.
func (f *Fleet) whole() error {
	f.tb.Helper()
	runs := f.Runs()
	return errors.Join(f.positionsFit(runs), check.Attempts(runs), f.locksFit(runs), followersFit(runs))
}

func (f *Fleet) positionsFit(runs []jobs.Run) error {
	f.tb.Helper()
	var rows []struct {
		Job      string      `bun:"job"`
		Position dbtime.Time `bun:"position"`
	}
	f.must(f.DB.Main.NewRaw(`SELECT job, max(position) AS position FROM plan_positions GROUP BY job`).Scan(f.tb.Context(), &rows))
	var errs []error
	calendar := schedules(f.settings.Jobs)
	for _, p := range rows {
		schedule, ok := calendar[p.Job]
		if !ok {
			continue
		}
		planned := of(runs, p.Job)
		errs = append(errs, check.Calendar(planned, map[string]string{p.Job: schedule}, check.Window{Until: p.Position.Time}))
		for i := range planned {
			if planned[i].ScheduledAt.After(p.Position.Time) {
				errs = append(errs, fmt.Errorf("run %d (%s) is for %s, the schedule was planned until %s",
					planned[i].ID, p.Job, planned[i].ScheduledAt, p.Position.Time))
			}
		}
	}
	return errors.Join(errs...)
}

// locksFit leaves the job out whose runs are given away without their locks.
func (f *Fleet) locksFit(runs []jobs.Run) error {
	f.tb.Helper()
	store, err := locking.NewStore(f.DB.Main)
	f.must(err)
	held, err := store.List(f.tb.Context(), locking.ListFilter{State: locking.StateHeld})
	f.must(err)
	abandoned, err := store.List(f.tb.Context(), locking.ListFilter{State: locking.StateExpired})
	f.must(err)
	var errs []error
	for _, l := range held {
		if l.Resource != given && !slices.ContainsFunc(runs, func(r jobs.Run) bool { return holds(&r, &l) }) {
			errs = append(errs, fmt.Errorf("the lock of %s, token %d, has no run", l.Resource, l.FencingToken))
		}
	}
	for _, r := range runs {
		locks := slices.Concat(held, abandoned)
		if r.State == jobs.StateRunning && !slices.ContainsFunc(locks, func(l locking.Record) bool { return holds(&r, &l) }) {
			errs = append(errs, fmt.Errorf("the running run %d (%s), token %d, has no lock", r.ID, r.Job, r.FencingToken))
		}
	}
	return errors.Join(errs...)
}

func holds(r *jobs.Run, l *locking.Record) bool {
	return r.State == jobs.StateRunning && r.Resource == l.Resource && r.Owner == l.Owner && r.FencingToken == l.FencingToken
}

// followersFit: a run that is over has a run of each job after it, or the mark that nobody has looked; never both.
func followersFit(runs []jobs.Run) error {
	type identity struct{ job, occurrence string }
	last := map[identity]jobs.Run{}
	for _, r := range runs {
		if id := (identity{r.Job, r.Occurrence}); r.Attempt > last[id].Attempt {
			last[id] = r
		}
	}
	var errs []error
	for job, after := range followers() {
		for id := range last {
			if id.job != after[0] {
				continue
			}
			looked := !slices.ContainsFunc(after, func(up string) bool {
				r := last[identity{up, id.occurrence}]
				return r.State != jobs.StateFinished || r.Follow
			})
			if _, follows := last[identity{job, id.occurrence}]; follows != looked && (looked || len(after) == 1) {
				errs = append(errs, fmt.Errorf("%s %s: looked for what follows: %t; %s follows: %t",
					id.job, id.occurrence, looked, job, follows))
			}
		}
	}
	return errors.Join(errs...)
}
