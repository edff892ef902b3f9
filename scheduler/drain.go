package scheduler

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
)

// drain lets running commands finish for DrainTimeout, then stops them, and waits until their outcomes are written and
// their locks released: outcomes first, locks last, so that another replica takes over at once. Meanwhile requests to end a
// run are obeyed as before (obey.go).
func (s *Scheduler) drain(ctx context.Context) error {
	s.draining = true
	audit.Log(s.o.Audit, audit.ReplicaDrain, audit.Success, audit.Actor(audit.ActorReplica, s.o.Replica),
		zap.Int("running", s.active.count()), zap.Duration("drain_timeout", s.o.DrainTimeout))
	s.lastClaims(ctx)

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
	timer.Reset(s.longestKill + writeTimeout)
	select {
	case <-idle:
		return nil
	case <-timer.C:
	}
	s.active.giveUp()
	<-idle
	return errors.New("leaving while outcomes could not be written")
}

// lastClaims starts, and so drains, what was claimed by a statement whose answer is missing. When the database does not
// say, the others recover it.
func (s *Scheduler) lastClaims(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), windDown)
	defer cancel()
	if err := s.settleUnknown(ctx); err != nil {
		s.o.Log.Warn("leaving without knowing what became of a claim", zap.Error(err))
	}
}
