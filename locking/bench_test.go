package locking_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
)

func eachBench(b *testing.B, f func(b *testing.B, store locking.Store)) {
	b.Helper()
	for name, open := range map[string]func(testing.TB) *database.DB{
		"postgres": dbtest.Postgres, "sqlite": dbtest.SQLite,
	} {
		b.Run(name, func(b *testing.B) { f(b, newStore(b, open(b).Main)) })
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	eachBench(b, func(b *testing.B, store locking.Store) {
		b.Helper()
		for b.Loop() {
			res, err := store.Acquire(b.Context(), []locking.AcquireRequest{{Resource: "a", Owner: "A", TTL: time.Minute}})
			require.NoError(b, err)
			freed, err := store.Release(b.Context(), []locking.Claim{claimOf(res[0].Record)})
			require.NoError(b, err)
			require.NoError(b, freed[0].Err)
		}
	})
}

func BenchmarkContendedLoser(b *testing.B) {
	eachBench(b, func(b *testing.B, store locking.Store) {
		b.Helper()
		_, err := store.Acquire(b.Context(), []locking.AcquireRequest{{Resource: "a", Owner: "A", TTL: time.Hour}})
		require.NoError(b, err)
		for b.Loop() {
			res, err := store.Acquire(b.Context(), []locking.AcquireRequest{{Resource: "a", Owner: "B", TTL: time.Minute}})
			require.NoError(b, err)
			require.False(b, res[0].Acquired)
		}
	})
}

func BenchmarkRenew(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			eachBench(b, func(b *testing.B, store locking.Store) {
				b.Helper()
				reqs := make([]locking.AcquireRequest, n)
				claims := make([]locking.Claim, n)
				for i := range reqs {
					reqs[i] = locking.AcquireRequest{
						Resource: fmt.Sprintf("report:monthly-%05d", i), Owner: "replica-7/4f1c9a/18273/1", TTL: time.Hour,
					}
				}
				res, err := store.Acquire(b.Context(), reqs)
				require.NoError(b, err)
				for i := range res {
					claims[i] = claimOf(res[i].Record)
				}
				for b.Loop() {
					renewed, err := store.Renew(b.Context(), claims)
					require.NoError(b, err)
					for _, r := range renewed {
						require.NoError(b, r.Err)
					}
				}
			})
		})
	}
}
