package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

func TestAClaimMatchesLabels(t *testing.T) {
	t.Parallel()
	wants := map[string]jobs.Labels{
		"anywhere": nil, "fast": {"disk": {"fast"}}, "two": {"disk": {"fast"}, "zone": {"a", "b"}},
		"dotted": {"kubernetes.io/os": {"linux"}}, "number": {"1": {"2"}}, "true": {"x": {"true"}},
	}
	replicas := map[string]struct {
		labels map[string]string
		runs   []string
	}{
		"none":        {nil, []string{"anywhere"}},
		"fast":        {map[string]string{"disk": "fast"}, []string{"anywhere", "fast"}},
		"slow":        {map[string]string{"disk": "slow", "zone": "a"}, []string{"anywhere"}},
		"all of it":   {map[string]string{"disk": "fast", "zone": "b", "rack": "7"}, []string{"anywhere", "fast", "two"}},
		"wrong zone":  {map[string]string{"disk": "fast", "zone": "c"}, []string{"anywhere", "fast"}},
		"the others":  {map[string]string{"kubernetes.io/os": "linux", "1": "2", "x": "true"}, []string{"anywhere", "dotted", "number", "true"}},
		"letter case": {map[string]string{"Disk": "fast", "disk": "Fast"}, []string{"anywhere"}},
	}
	each(t, func(b *bench) {
		for name, replica := range replicas {
			var names []string
			for job, only := range wants {
				names = append(names, name+": "+job)
				b.put(b.due(named(name+": "+job, func(j *jobs.Job) { j.OnlyOn = only })(b.t), time.Minute))
			}
			r := b.request(len(names), names...)
			r.labels = replica.labels
			won, unknown, err := b.claim(b.ctx(), r)
			require.NoError(b.t, err)
			got := []string{}
			for _, c := range won {
				got = append(got, c.run.Job[len(name)+2:])
				b.mustFinish(c, jobs.OutcomeSucceeded)
			}
			slices.Sort(got)
			assert.Equal(b.t, replica.runs, got, name)
			assert.NotContains(b.t, unknown, name+": fast", "it is known all the same")
			_, err = b.db.NewRaw("DELETE FROM job_runs").Exec(b.ctx())
			require.NoError(b.t, err)
		}
	})
}

// Runs for others must not fill the few candidates of a claim.
func TestRunsForOtherLabelsAreInNobodysWay(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		var names []string
		for i := range 5 {
			j := named(fmt.Sprintf("theirs-%d", i), func(j *jobs.Job) { j.OnlyOn = jobs.Labels{"zone": {"z"}} })(b.t)
			names = append(names, j.Name)
			b.put(b.due(j, time.Minute))
		}
		b.put(b.due(named("ours", nil)(b.t), time.Second))
		won := b.mustClaim(1, append(names, "ours")...)
		require.Len(b.t, won, 1)
		assert.Equal(b.t, "ours", won[0].run.Job)
	})
}

// The row decides, as with every policy: a replica whose definition asks for nothing leaves it to others.
func TestTheNextAttemptAsksForTheSameLabels(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		fast := map[string]string{"disk": "fast"}
		j := named("j", func(j *jobs.Job) {
			j.OnlyOn, j.Retry = jobs.Labels{"disk": {"fast"}}, jobs.Retry{Attempts: 2}
		})(b.t)
		b.put(b.due(j, time.Minute))
		r := b.request(1, "j")
		r.labels = fast
		won, _, err := b.claim(b.ctx(), r)
		require.NoError(b.t, err)
		require.Len(b.t, won, 1)
		b.mustFinish(won[0], jobs.OutcomeFailed)
		assert.Empty(b.t, b.mustClaim(1, "j"))
		won, _, err = b.claim(b.ctx(), r)
		require.NoError(b.t, err)
		require.Len(b.t, won, 1)
		assert.Equal(b.t, 2, won[0].run.Attempt)
	})
}

func TestMissedWithoutAReplicaThatMatches(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.silence = time.Hour
		for name, labels := range map[string]Labels{"a": {"zone": "a"}, "plain": nil, "left": {"zone": "z"}, "silent": {"zone": "z"}} {
			u := b.unit("hash", named("j", nil)(b.t))
			u.who = identity{Replica: name, Host: "h", PID: 7, Nonce: name}
			u.o.Labels = labels
			require.NoError(b.t, u.beat(b.ctx(), false))
			if name == "left" {
				require.NoError(b.t, u.leave(b.ctx()))
			}
		}
		_, err := b.db.NewRaw("UPDATE replicas SET seen_at = ? WHERE name = 'silent'", dbtime.Arg(b.d, b.clock().Add(-2*time.Hour))).Exec(b.ctx())
		require.NoError(b.t, err)
		late := func(name string, only jobs.Labels) {
			b.put(b.due(named(name, func(j *jobs.Job) { j.OnlyOn, j.StartDeadline = only, time.Second })(b.t), time.Minute))
		}
		late("nobody", jobs.Labels{"zone": {"y", "z"}})
		late("somebody", jobs.Labels{"zone": {"a", "z"}})
		late("anybody", nil)
		ended, _, err := b.settle(b.ctx())
		require.NoError(b.t, err)
		require.Len(b.t, ended, 3)
		for _, r := range ended {
			assert.Equal(b.t, jobs.OutcomeMissed, r.Outcome)
			if r.Job != "nobody" {
				assert.Equal(b.t, jobs.ReasonNoCapacity, r.Reason, r.Job)
				continue
			}
			assert.Equal(b.t, jobs.ReasonNoMatchingReplica, r.Reason)
			assert.JSONEq(b.t, `{"only_on": {"zone": ["y", "z"]},
				"replicas": [{"name": "a", "labels": {"zone": "a"}}, {"name": "plain", "labels": {}}]}`, string(r.Detail))
		}
	})
}
