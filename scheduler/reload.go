package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// definitions are the jobs that a replica knows. They are replaced as a whole, and never changed.
type definitions struct {
	jobs []*jobs.Job
	hash string
}

// Reload replaces the known jobs: no step of a tick sees a part of both sets. It never waits, neither for a running job
// nor for the database: the next tick that reaches the database adopts them. Of several calls before that, the last one
// counts. It may be called at any time, and does nothing once the scheduler drains.
//
// A run that was claimed keeps the definition it was claimed with. Pending runs of a job that is no longer known stay
// for the replicas that know it, and are settled like all others. A schedule whose hash is unchanged goes on from
// where it was planned. One that is replaced or removed is planned for the last time up to the moment when the new ones
// begin, so that no instant falls between two definitions. One that is new here goes on from its stored position, and
// begins now when it has none.
func (s *Scheduler) Reload(known []*jobs.Job, hash string) {
	s.next.Store(&definitions{jobs: known, hash: hash})
	s.Wake()
}

// adopt makes the definitions of the last Reload the known ones, unless that has to wait for another tick.
func (s *Scheduler) adopt(ctx context.Context) error {
	next := s.next.Load()
	if next == nil {
		return nil
	}
	plans, fresh := plansOf(next.jobs, s.plans)
	if s.loaded { // otherwise nothing was planned yet, and planDue reads all positions
		done, err := s.handOver(ctx, fresh, replaced(s.plans, plans))
		if err != nil || !done {
			return err
		}
	}
	s.know(next, plans)
	s.next.CompareAndSwap(next, nil) // a Reload that came meanwhile is the next tick's
	select {
	case s.changed <- struct{}{}: // the others see the new hash at once
	default:
	}
	return nil
}

// handOver begins the fresh schedules and ends the old ones, in this order: an instant in between belongs to both, and
// has one identity. Not done means that another replica plans an old one at this moment, or that there is more to plan
// than one transaction takes.
func (s *Scheduler) handOver(ctx context.Context, fresh, old []*planned) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := s.store.loadPositions(ctx, slices.Concat(fresh, old)); err != nil || len(old) == 0 {
		return err == nil, err
	}
	before := make([]time.Time, len(old))
	for i, p := range old {
		before[i] = p.position
	}
	runs, err := s.store.plan(ctx, old, planRules{late: s.o.TTL})
	if err != nil {
		return false, err
	}
	for i := range runs {
		s.auditPlanned(&runs[i])
	}
	now := s.clock.now()
	for i, p := range old {
		if p.position.Equal(before[i]) || !p.next.IsZero() && !p.next.After(now) {
			return false, nil
		}
	}
	return true, nil
}

// know replaces everything that is derived from the definitions.
func (s *Scheduler) know(d *definitions, plans []*planned) {
	s.known.Store(d)
	s.plans, s.chains, s.ages, s.lates = plans, followersOf(d.jobs), agesOf(d.jobs), latesOf(d.jobs)
	s.active.jobs = make(map[string]*jobs.Job, len(d.jobs))
	for _, j := range d.jobs {
		s.active.jobs[j.Name] = j
		// A run of a job that was removed may still be on its way: the longest ever is what a drain must expect.
		s.longestKill = max(s.longestKill, j.KillAfter)
	}
	s.unknown = []string{} // some of them may be known now
}

// plansOf are the plans of the jobs. A schedule that was there before goes on; the others come as fresh, too.
func plansOf(known []*jobs.Job, before []*planned) (plans, fresh []*planned) {
	kept := byKey(before)
	for _, j := range known {
		if j.Schedule == nil {
			continue
		}
		p := &planned{job: j, hash: j.Schedule.Hash()}
		if old := kept[p.key()]; old != nil {
			p.position, p.next = old.position, old.next
		} else {
			fresh = append(fresh, p)
		}
		plans = append(plans, p)
	}
	return plans, fresh
}

// replaced are the plans that do not go on.
func replaced(before, plans []*planned) (old []*planned) {
	kept := byKey(plans)
	for _, p := range before {
		if kept[p.key()] == nil {
			old = append(old, p)
		}
	}
	return old
}

func (p *planned) key() positionKey { return positionKey{Job: p.job.Name, Hash: p.hash} }
