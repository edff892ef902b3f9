package scheduler

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
)

// A replica that was asked to drain takes no new runs: it goes on to plan, settle and recover, and its running runs come to
// their own end. The request is for one process, until it is taken back or the process ends. Every look asks for it, so that
// it is obeyed within a second; while the database does not answer, what was asked last holds.

// Draining reports whether somebody asked this replica to take no more runs.
func (s *Scheduler) Draining() bool { return s.asked.Load() }

// obeyDrain follows the request, and keeps the replica's row up to date meanwhile: whoever waits for the last run to end
// looks there. It is called when no claim is in doubt.
func (s *Scheduler) obeyDrain(ctx context.Context, asked bool) {
	if s.asked.Swap(asked) != asked {
		s.logDrain(ctx, asked)
		s.announce()
	}
	if asked && s.told.Load() != int64(s.active.count()) {
		s.announce()
	}
}

// announce has this replica's row written now.
func (s *Scheduler) announce() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// logDrain says who asked. That cannot be read any more when the request was taken back at once.
func (s *Scheduler) logDrain(ctx context.Context, asked bool) {
	action, fields := audit.ReplicaUndrain, []zap.Field{audit.Replica(s.o.Replica), zap.Int("running", s.active.count())}
	by := audit.Actor(audit.ActorReplica, s.o.Replica)
	if asked {
		action = audit.ReplicaDrain
		ctx, cancel := context.WithTimeout(ctx, opTimeout)
		defer cancel()
		if d, err := s.store.drainOf(ctx, s.who.Nonce); err == nil && d != nil {
			by, fields = audit.Actor(audit.ActorUser, d.By), append(fields, audit.Reason(d.Reason), zap.String("asked_at", audit.FormatTime(d.At)))
		}
	}
	audit.Log(s.o.Audit, action, audit.Success, append(fields, by)...)
}

// Drain is a request that a replica take no more runs.
type Drain struct {
	By     string
	Reason string
	At     time.Time // of the database's clock
}
