package scheduler

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// atEnd calls a function when the end of a run was written and its lock is not forgotten yet.
type atEnd func()

func (atEnd) Claimed(*jobs.Run) {}
func (h atEnd) Ended(*Ending)   { h() }

// P6: between the COMMIT that releases a run's lock and our hearing of it, the next run gets the name. The first run's lock was
// released and not lost, except when the run had been given away.
func TestAFinishedRunsLockIsReleasedAndNotLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		givenAway bool
		cause     error
	}{"written": {false, locking.ErrReleased}, "given away": {true, locking.ErrLost}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(b *bench) {
				j := named("j", nil)(b.t)
				b.put(b.due(j, time.Minute))
				c := b.mustClaim(1, "j")[0]
				u := b.unit("hash", j)
				lock := u.o.Keeper.Keep(locking.Grant{Record: c.lock, SentAt: c.sentAt, TTL: time.Hour})
				next := c.lock
				next.FencingToken++
				u.o.Observe = []Observer{atEnd(func() {
					u.o.Keeper.Keep(locking.Grant{Record: next, SentAt: c.sentAt, TTL: time.Hour})
					assert.NoError(b.t, lock.Context().Err())
				})}
				if test.givenAway {
					b.exec(`UPDATE job_runs SET state = 'finished', outcome = 'lost', reason = 'replica_lost', finished_at = started_at`)
				}
				u.Scheduler.write(&report{run: c.run, outcome: jobs.OutcomeSucceeded}, lock)
				require.ErrorIs(b.t, context.Cause(lock.Context()), test.cause)
			})
		})
	}
}
