package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// startBeating tells the others every TTL/3 that this replica is here; the returned function ends it.
func (s *Scheduler) startBeating(ctx context.Context) (stop func()) {
	beating, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(s.o.TTL / 3)
		defer tick.Stop()
		for {
			if err := s.beat(beating, ctx.Err() != nil || s.asked.Load()); err != nil && beating.Err() == nil {
				s.o.Log.Debug("this replica's row could not be written", zap.Error(err))
			}
			select {
			case <-tick.C:
			case <-s.changed:
			case <-beating.Done():
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// beat moves seen_at. A replica that was away for a TTL or longer (or is new) begins a new lifetime instead, so that
// the gap stays visible: "nobody reached the database from A to B".
func (s *Scheduler) beat(ctx context.Context, draining bool) error {
	ctx, done := s.step(ctx, OpBeat)
	defer done()
	running, hash := s.active.count(), s.known.Load().hash
	s.told.Store(int64(running))
	res, err := s.store.db.NewRaw(s.store.q.beat, running, draining, hash, s.who.Nonce,
		dbtime.Millis(s.o.TTL), s.who.Nonce).Exec(ctx)
	if err != nil {
		return fmt.Errorf("updating this replica's row: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	_, err = s.store.db.NewRaw(s.store.q.join, s.who.Replica, s.who.Nonce, s.who.Host, s.who.PID, s.o.Version,
		hash, s.o.Capacity, running, labelsText(s.o.Labels)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("adding this replica's row: %w", err)
	}
	audit.Log(s.o.Audit, audit.ReplicaJoin, audit.Success, audit.Actor(audit.ActorReplica, s.o.Replica),
		zap.String("host", s.who.Host), zap.Int("pid", s.who.PID), zap.String("definitions", hash))
	return nil
}

// leave closes this replica's lifetime.
func (s *Scheduler) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), windDown)
	defer cancel()
	audit.Log(s.o.Audit, audit.ReplicaLeave, audit.Success, audit.Actor(audit.ActorReplica, s.o.Replica))
	if _, err := s.store.db.NewRaw(s.store.q.leave, s.who.Nonce).Exec(ctx); err != nil {
		return fmt.Errorf("closing this replica's row: %w", err)
	}
	return nil
}
