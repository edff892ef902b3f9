package scheduler

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
)

// writeTimeout is what outcomes get at the end, after the commands are dead.
const writeTimeout = 4 * time.Second

// drain lets running commands finish for DrainTimeout, then stops them, and waits until their outcomes are written and
// their locks released: outcomes first, locks last, so that another replica takes over at once.
func (s *Scheduler) drain(ctx context.Context) error {
	s.draining = true
	audit.Log(s.o.Audit, audit.ReplicaDrain, audit.Success, audit.Actor(audit.ActorReplica, s.o.Replica),
		zap.Int("running", s.active.count()), zap.Duration("drain_timeout", s.o.DrainTimeout))
	_ = s.settleUnknown(context.WithoutCancel(ctx)) // a claim that nobody answered for is recovered by others

	idle := make(chan struct{})
	go func() { // ends with the last run: each is bounded by the timers below
		s.active.wg.Wait()
		close(idle)
	}()
	timer := time.NewTimer(s.o.DrainTimeout)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-s.hurry:
	case <-timer.C:
	}
	s.active.stopAll()
	timer.Reset(s.longestKill() + writeTimeout)
	select {
	case <-idle:
		return nil
	case <-timer.C:
	}
	s.active.giveUp()
	<-idle
	return errors.New("leaving while outcomes could not be written")
}

func (s *Scheduler) longestKill() (longest time.Duration) {
	for _, j := range s.o.Jobs {
		longest = max(longest, j.KillAfter)
	}
	return longest
}
