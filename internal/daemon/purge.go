package daemon

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/failpoint"
	"github.com/cronlatch/cronlatch/scheduler"
)

const (
	purgeFirst = 5 * time.Minute // after the start, about: a daemon that restarts all the time purges, too
	purgeEvery = time.Hour       // about
	purgeBatch = 1000            // rows in one statement: what it locks is soon free again
)

// purger removes the rows of locks that nobody has held for long. Every replica does it; they are in nobody's way.
type purger struct {
	store interface {
		Purge(ctx context.Context, olderThan time.Duration, limit int) (int, error)
	}
	keepFor time.Duration
	log     *zap.Logger
	history *historian // nil in tests that are about locks
}

// historian deletes what is older than the history that is kept. Every replica does it, at times of its own; what one of them
// is deleting, the others pass over.
type historian struct {
	store interface {
		Prune(ctx context.Context, k *scheduler.Keeping) (scheduler.Pruned, error)
	}
	keeping func() *scheduler.Keeping // as the configuration is now
	log     *zap.Logger
}

// run purges until ctx ends.
func (p *purger) run(ctx context.Context) {
	next := time.NewTimer(failpoint.Every(about(purgeFirst)))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		p.purge(ctx)
		p.history.prune(ctx)
		next.Reset(about(purgeEvery))
	}
}

// purge goes on while there is more than one statement's worth. What went wrong is tried again in an hour.
func (p *purger) purge(ctx context.Context) {
	total := 0
	for ctx.Err() == nil {
		n, err := p.store.Purge(ctx, p.keepFor, purgeBatch)
		total += n
		if err != nil {
			if ctx.Err() == nil {
				p.log.Warn("old locks could not be purged", zap.Error(err))
			}
			break
		}
		if n < purgeBatch {
			break
		}
	}
	if total > 0 {
		p.log.Info("purged old locks", zap.Int("rows", total))
	}
}

// prune deletes all that is not kept. What went wrong is tried again in an hour.
func (h *historian) prune(ctx context.Context) {
	if h == nil || ctx.Err() != nil {
		return
	}
	done, err := h.store.Prune(ctx, h.keeping())
	if err != nil && ctx.Err() == nil {
		h.log.Warn("old history could not be deleted", zap.Error(err))
	}
	if done.Total() > 0 {
		h.log.Info("deleted old history", zap.Int("runs", done.Runs), zap.Int("replicas", done.Replicas),
			zap.Int("messages", done.Messages), zap.Int("pauses", done.Pauses), zap.Int("chunks", done.Chunks))
	}
}

// about is between half of d and one and a half of it, so that replicas that started together do not purge together.
func about(d time.Duration) time.Duration { return d/2 + rand.N(d) }
