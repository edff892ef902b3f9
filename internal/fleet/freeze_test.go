package fleet

import (
	"context"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// FreezeVictim freezes one of the candidates while it runs the job, certainly so: on a slow machine the run may be over
// between the look and the signal, and then another one is waited for. Whoever is frozen inside a transaction keeps what it
// has locked in the database: a few rows until the server's timeout on PostgreSQL, where others pass them by; the whole
// file on SQLite, where nothing wrong happens then but nothing at all until it goes on. On SQLite another moment is tried.
func (f *Fleet) FreezeVictim(job, role string, candidates ...*Replica) (victim *Replica, run jobs.Run, frozen time.Duration) {
	f.tb.Helper()
	until(f.tb, "a replica is frozen in the middle of "+job, 2*patience, func() bool {
		victim, run = f.WaitVictim(job, role, candidates...)
		frozen = victim.Freeze()
		if f.writable() && f.isRunning(run.ID) {
			return true
		}
		victim.Thaw()
		return false
	})
	return victim, run, frozen
}

// isRunning reports whether a run is running in the ledger; of a frozen replica it stays so until others recover it.
func (f *Fleet) isRunning(id int64) bool {
	f.tb.Helper()
	run, err := f.Ledger.Get(f.tb.Context(), id)
	f.must(err)
	return run.State == jobs.StateRunning
}

// writable reports whether a row can be written, which a frozen replica can prevent on SQLite.
func (f *Fleet) writable() bool {
	if f.DB.Kind != database.SQLite {
		return true
	}
	ctx, cancel := context.WithTimeout(f.tb.Context(), time.Second)
	defer cancel()
	store, err := locking.NewStore(f.DB.Main)
	f.must(err)
	_, err = store.Acquire(ctx, []locking.AcquireRequest{{Resource: "fleet probe", Owner: locking.NewOwner(), TTL: time.Millisecond}})
	return err == nil
}

// Outlast waits until more than two TTLs have passed since an instant on the boot clock.
func (f *Fleet) Outlast(since time.Duration) {
	f.tb.Helper()
	pass(f.tb, since+2*f.settings.TTL+100*time.Millisecond)
}
