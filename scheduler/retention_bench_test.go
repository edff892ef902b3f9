package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// oldThousands are deleted. With 200 it takes a minute and a half: 2,700 runs a second, and the slowest claim takes 0.15 s.
const oldThousands = 10

// BenchmarkClaimWhileHistoryIsDeleted claims one run after another while old runs are deleted; it reports the slowest claim.
func BenchmarkClaimWhileHistoryIsDeleted(b *testing.B) {
	for name, database := range map[string]func(testing.TB) *database.DB{"postgres": dbtest.Postgres, "sqlite": dbtest.SQLite} {
		b.Run(name, func(b *testing.B) {
			s := open(b, database(b))
			old, fresh := named("old", nil)(b), named("fresh", nil)(b)
			for i := range oldThousands {
				rows := make([]jobs.NewRun, 1000)
				for k := range rows {
					rows[k] = old.EndedRun(ago(200).Add(-time.Duration(i*1000+k)*time.Second), jobs.OutcomeSucceeded, "", nil)
				}
				s.put(rows...)
			}
			s.exec(`UPDATE job_runs SET finished_at = scheduled_at`)
			r, err := OpenRetention(s.db)
			require.NoError(b, err)
			done := make(chan Pruned)
			began := time.Now()
			go func() {
				p, err := r.Prune(s.ctx(), &Keeping{})
				if err != nil {
					b.Error(err)
				}
				done <- p
			}()
			slowest, n := time.Duration(0), 0
			for {
				select {
				case p := <-done:
					b.ReportMetric(float64(p.Runs)/time.Since(began).Seconds(), "deleted/s")
					b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-claim-ms")
					b.ReportMetric(float64(n), "claims")
					return
				default:
				}
				row := fresh.ScheduledRun(ago(0).Add(time.Duration(n) * time.Second))
				row.StartBy, row.Occurrence = time.Time{}, fmt.Sprint("m:", n)
				s.put(row)
				n++
				asked := time.Now()
				won := s.mustClaim(1, "fresh")
				slowest = max(slowest, time.Since(asked))
				require.Len(b, won, 1)
				s.clear(won)
			}
		})
	}
}
