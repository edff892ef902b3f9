package fleet

import (
	"context"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// FreezeVictim freezes one of the candidates while it runs the job and is not in the middle of a transaction. Whoever is
// frozen inside one keeps what it has locked in the database: a few rows until the server's timeout on PostgreSQL, the
// whole file on SQLite. Nothing wrong happens then, but nothing at all until it goes on, and the test is about the rest.
func (f *Fleet) FreezeVictim(job, role string, candidates ...*Replica) (victim *Replica, run jobs.Run, frozen time.Duration) {
	f.t.Helper()
	until(f.t, "a replica is frozen outside of a transaction", patience, func() bool {
		victim, run = f.WaitVictim(job, role, candidates...)
		frozen = victim.Freeze()
		if f.idle(victim) {
			return true
		}
		victim.Thaw()
		return false
	})
	return victim, run, frozen
}

// idle gives statements that are on their way a moment to end.
func (f *Fleet) idle(r *Replica) bool {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
	defer cancel()
	if f.DB.Kind == database.SQLite {
		return f.writable(ctx)
	}
	for ctx.Err() == nil {
		if f.postgresIdle(ctx, r) {
			return true
		}
	}
	return false
}

// writable reports whether a row can be written.
func (f *Fleet) writable(ctx context.Context) bool {
	store, err := locking.NewStore(f.DB.Main)
	f.must(err)
	_, err = store.Acquire(ctx, []locking.AcquireRequest{{Resource: "fleet probe", Owner: locking.NewOwner(), TTL: time.Millisecond}})
	return err == nil
}

// Outlast waits until more than two TTLs have passed since an instant on the boot clock.
func (f *Fleet) Outlast(since time.Duration) {
	f.t.Helper()
	pass(f.t, since+2*f.settings.TTL+100*time.Millisecond)
}
