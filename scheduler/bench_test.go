package scheduler

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

const burst = 10_000

// BenchmarkClaim: 10,000 jobs fall due at once, three claimers take them in batches of 16. One iteration is the whole burst.
func BenchmarkClaim(b *testing.B) {
	for name, database := range map[string]func(testing.TB) *database.DB{"postgres": dbtest.Postgres, "sqlite": dbtest.SQLite} {
		b.Run(name, func(b *testing.B) {
			s := open(b, database(b))
			names := make([]string, burst)
			for i := range names {
				names[i] = fmt.Sprintf("job-%05d", i)
			}
			for round := 0; b.Loop(); round++ {
				b.StopTimer()
				rows := make([]jobs.NewRun, burst)
				at := s.clock().Add(-time.Minute).Truncate(time.Second)
				for i, n := range names {
					rows[i] = named(n, nil)(b).ScheduledRun(at.Add(-time.Duration(round) * time.Hour))
					rows[i].StartBy = time.Time{}
				}
				s.put(rows...)
				b.StartTimer()
				claimed := s.claimAll()
				b.StopTimer()
				require.Len(b, claimed, burst)
				s.clear(claimed)
				b.StartTimer()
			}
			b.ReportMetric(float64(burst*b.N)/b.Elapsed().Seconds(), "claims/s")
		})
	}
}

// BenchmarkNoteWaits: a look at what 10,000 due runs wait for, of which the next ones have been taken down already. A replica
// does that once a second at most, and only when it has left something.
func BenchmarkNoteWaits(b *testing.B) {
	for name, database := range map[string]func(testing.TB) *database.DB{"postgres": dbtest.Postgres, "sqlite": dbtest.SQLite} {
		b.Run(name, func(b *testing.B) {
			s := open(b, database(b))
			rows := make([]jobs.NewRun, burst)
			at := s.clock().Add(-time.Minute).Truncate(time.Second)
			for i := range rows {
				rows[i] = named(fmt.Sprintf("job-%05d", i), nil)(b).ScheduledRun(at)
			}
			s.put(rows...)
			look := func() {
				require.NoError(b, s.noteWaits(b.Context(), &lookout{replica: "a", runnable: func(string) bool { return true }, capacity: 16}))
			}
			look()
			for b.Loop() {
				look()
			}
		})
	}
}

// clear ends the claimed runs and their locks in a few statements; it is not measured.
func (b *bench) clear(all []claimed) {
	for part := range slices.Chunk(all, 1000) {
		endings := make([]ending, len(part))
		locks := make([]locking.Claim, len(part))
		for i, c := range part {
			endings[i] = ending{ID: c.run.ID, FromState: jobs.StateRunning, FencingToken: c.run.FencingToken, Outcome: jobs.OutcomeSucceeded}
			locks[i] = locking.Claim{Resource: c.run.Resource, Owner: c.run.Owner, FencingToken: c.run.FencingToken}
		}
		_, err := b.end(b.ctx(), b.db, endings)
		require.NoError(b.t, err)
		_, err = b.locks().Release(b.ctx(), locks)
		require.NoError(b.t, err)
	}
}

func (b *bench) claimAll() (all []claimed) {
	b.t.Helper()
	r := b.request(16)
	r.knows = func(string) bool { return true }
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				won, _, err := b.claim(b.ctx(), r)
				if err != nil {
					b.t.Error(err)
				}
				if err != nil || len(won) == 0 {
					return
				}
				mu.Lock()
				all = append(all, won...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}
