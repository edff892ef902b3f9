package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func limited(limits map[string]int) func(*jobs.Job) { return func(j *jobs.Job) { j.Limits = limits } }

func TestLimitsHoldOverAllJobsWithTheTag(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		names := []string{"a", "b", "c", "free", "both"}
		for i, name := range names[:3] {
			b.put(b.due(named(name, limited(map[string]int{"db": 2}))(b.t), time.Duration(50-i)*time.Second))
		}
		b.put(b.due(named("both", limited(map[string]int{"db": 2, "mail": 1}))(b.t), 30*time.Second))
		b.put(b.due(named("free", nil)(b.t), 20*time.Second))

		won := b.mustClaim(10, names...)
		assert.Equal(b.t, []string{"a", "b", "free"}, claimedJobs(won), "the oldest ones, and those without the tag")
		assert.Empty(b.t, b.mustClaim(10, names...))
		b.mustFinish(won[0], jobs.OutcomeFailed)
		won = b.mustClaim(10, names...)
		assert.Equal(b.t, []string{"c"}, claimedJobs(won), "one ended, one starts")
		b.mustFinish(won[0], jobs.OutcomeSucceeded)
		assert.Equal(b.t, []string{"both"}, claimedJobs(b.mustClaim(10, names...)))
	})
}

func claimedJobs(won []claimed) []string {
	names := make([]string, len(won))
	for i := range won {
		names[i] = won[i].run.Job
	}
	return names
}

// A tag without room must not fill the few candidates of a claim.
func TestAFullTagDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		var names []string
		for i := range 20 {
			name := fmt.Sprintf("limited-%02d", i)
			names = append(names, name)
			b.put(b.due(named(name, limited(map[string]int{"db": 1}))(b.t), time.Minute))
		}
		require.Len(b.t, b.mustClaim(3, names...), 1)
		b.put(b.due(named("free", nil)(b.t), time.Second))
		assert.Equal(b.t, []string{"free"}, claimedJobs(b.mustClaim(1, append(names, "free")...)))
	})
}

// A tag with no room left inside one claim leaves the rest to the next one.
func TestARunOfTwoTagsTakesBothOrNone(t *testing.T) {
	t.Parallel()
	used := map[string]int{"db": 1}
	assert.False(t, reserve(used, map[string]int{"db": 1, "mail": 1}))
	assert.Equal(t, map[string]int{"db": 1}, used)
	assert.True(t, reserve(used, map[string]int{"db": 2, "mail": 1}))
	assert.Equal(t, map[string]int{"db": 2, "mail": 1}, used)
	assert.True(t, reserve(used, nil))
}

func TestMissedBecauseOfALimit(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		change := func(j *jobs.Job) { j.Limits, j.StartDeadline = map[string]int{"db": 1, "mail": 9}, 0 }
		b.put(b.due(named("first", change)(b.t), 40*time.Second))
		require.Len(b.t, b.mustClaim(10, "first"), 1)
		second := named("second", func(j *jobs.Job) { change(j); j.StartDeadline = time.Second })(b.t)
		row := b.put(b.due(second, 30*time.Second))[0]
		ended, _ := b.mustSettle()
		require.Len(b.t, ended, 1)
		run := b.get(row.ID)
		assert.Equal(b.t, jobs.OutcomeMissed, run.Outcome)
		assert.Equal(b.t, jobs.ReasonLimit, run.Reason)
		assert.JSONEq(b.t, `{"tag": "db", "limits": {"db": 1, "mail": 9}}`, string(run.Detail))
	})
}

// Three claimers at once, two overlapping tags in either order: never more than the limit, and no deadlock.
func TestLimitsAreExactUnderThreeClaimers(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		const n, most = 60, 5
		var names []string
		for i := range n {
			limits := []map[string]int{{"x": most, "y": most + 2}, {"y": most + 2}, {"x": most}}[i%3]
			names = append(names, fmt.Sprintf("job-%02d", i))
			b.put(b.due(named(names[i], limited(limits))(b.t), time.Duration(n-i)*time.Second))
		}
		running, finished := map[int64]claimed{}, 0
		for finished < n {
			for _, c := range b.claimAtOnce(3, 4, names) {
				running[c.run.ID] = c
			}
			require.NotEmpty(b.t, running, "whoever has room starts something")
			used := map[string]int{}
			for _, c := range running {
				for tag := range c.run.Limits {
					used[tag]++
				}
			}
			assert.LessOrEqual(b.t, used["x"], most)
			assert.LessOrEqual(b.t, used["y"], most+2)
			for id, c := range running {
				b.mustFinish(c, jobs.OutcomeSucceeded)
				delete(running, id)
				finished++
			}
		}
	})
}

// claimAtOnce is one claim each by so many claimers.
func (b *bench) claimAtOnce(claimers, limit int, names []string) (all []claimed) {
	type result struct {
		won []claimed
		err error
	}
	results := make(chan result)
	for range claimers {
		go func() {
			won, _, err := b.claim(b.ctx(), b.request(limit, names...))
			results <- result{won, err}
		}()
	}
	for range claimers {
		r := <-results
		require.NoError(b.t, r.err)
		all = append(all, r.won...)
	}
	return all
}
