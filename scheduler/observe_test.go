package scheduler

import (
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// endings counts as cronlatch_runs_total does, for all replicas of a story together.
type endings struct {
	mu sync.Mutex
	n  map[string]int // by job, outcome and trigger
}

func (e *endings) Claimed(*jobs.Run) {}

func (e *endings) Ended(end *Ending) {
	if !end.Written {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.n == nil {
		e.n = map[string]int{}
	}
	e.n[seriesOf(end.Run)]++
}

func seriesOf(r *jobs.Run) string {
	return r.Job + " " + string(r.Outcome) + " " + string(r.Trigger)
}

// assertCounted: each row of the ledger that has an outcome was counted once, and nothing else was, whoever has ended it and
// however. Every story of the policies and of explain ends with it.
func (s *stage) assertCounted() {
	s.t.Helper()
	if s.deleted {
		return
	}
	ledger, err := jobs.OpenLedger(s.db.Main)
	require.NoError(s.t, err)
	runs, err := ledger.List(s.t.Context(), jobs.RunFilter{State: jobs.StateFinished, Limit: 10_000})
	require.NoError(s.t, err)
	var want map[string]int
	for i := range runs {
		if want == nil {
			want = map[string]int{}
		}
		want[seriesOf(&runs[i])]++
	}
	s.counted.mu.Lock()
	defer s.counted.mu.Unlock()
	assert.Equal(s.t, want, s.counted.n)
}
