package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// By tag over the API of one replica: on none of the three anything of these jobs starts, and the others go on.
func TestPauseByTagHoldsOnAllReplicas(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		list := shortJobs(4)
		f := keyed(t, url, Settings{Jobs: list}, map[string]string{"short-00": "tags: [finance]", "short-01": "tags: [finance, other]"})
		a := f.StartReady("a")
		f.StartReady("b")
		f.StartReady("c")
		until(t, "all have run", patience, func() bool { return f.ran(list, time.Time{}) })
		server := []string{"--server", a.address()}
		s := f.inPause(append([]string{"jobs", "pause", "--tag", "finance", "--reason", "close"}, server...),
			append([]string{"jobs", "resume", "--tag", "finance"}, server...), func() {
				paused := f.now()
				until(t, "the others run meanwhile", patience, func() bool { return f.ran(list[2:], paused) })
			})
		until(t, "they run again", patience, func() bool { return f.ran(list[:2], s.until) })
		h := f.Rest()
		missed, others := 0, map[string]int{}
		for _, r := range h.Runs {
			tagged := r.Job == "short-00" || r.Job == "short-01"
			if tagged && r.StartedAt != nil {
				assert.False(t, s.has(*r.StartedAt), "run %d of %s started on %s at %s", r.ID, r.Job, r.Replica, r.StartedAt)
			}
			if tagged && r.Reason == jobs.ReasonPaused && s.has(r.ScheduledAt) {
				missed++
				assert.Contains(t, string(r.Detail), `"close"`)
			}
			if !tagged && r.StartedAt != nil && s.has(*r.StartedAt) {
				others[r.Job]++
			}
		}
		assert.GreaterOrEqual(t, missed, 6)
		assert.Len(t, others, 2, "the others ran meanwhile")
		code, out := f.Cronlatch("audit", "list", "--action", "job.*", "-o", "ndjson")
		require.Zero(t, code, out)
		assert.Equal(t, 4, strings.Count(out, `"tag":"finance"`)+strings.Count(out, `"tag": "finance"`), out)
	})
}
