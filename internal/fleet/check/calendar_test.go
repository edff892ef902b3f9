package check_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
)

func TestInstants(t *testing.T) {
	t.Parallel()
	day := noon().Truncate(24 * time.Hour) // 2026-05-04, a Monday
	for schedule, want := range map[string]int{
		"* * * * * *": 24*60*60 + 1, "*/20 * * * * *": 3*60*24 + 1, "5,50 30 * * * *": 2 * 24, "0 0 12 * * *": 1,
		"0 0 0 * * 1": 1, "0 0 0 * * 2": 1, "0 0 0 * * 3": 0, "0 0 6 4 5 *": 1, "0 0 6 4 6 *": 0,
	} {
		assert.Len(t, check.Instants(schedule, day, day.Add(24*time.Hour)), want, schedule)
	}
	assert.Equal(t, []time.Time{day.Add(time.Second)}, check.Instants("* * * * * *", day.Add(1), day.Add(time.Second)))
	assert.Panics(t, func() { check.Instants("* * * * *", day, day) })
	assert.Panics(t, func() { check.Instants("* * * * * *", time.Time{}, day) }, "two thousand years")
	assert.Panics(t, func() { check.Instants("x * * * * *", day, day) })
}

func TestCalendarCatches(t *testing.T) {
	t.Parallel()
	checker := func(h []jobs.Run) error {
		return check.Calendar(h, map[string]string{"j": "* * * * * *"}, check.Window{From: *at(0), Until: *at(2000)})
	}
	kill(t, ledger, checker, []mutant[[]jobs.Run]{
		{"a hole", func(h []jobs.Run) []jobs.Run { return append(h[:1], h[2:]...) }, "j has 0 rows for 2026-05-04T12:00:01Z"},
		{"the first is missing", func(h []jobs.Run) []jobs.Run { return h[1:] }, "j has 0 rows for 2026-05-04T12:00:00Z"},
		{"the last is missing", func(h []jobs.Run) []jobs.Run { return h[:2] }, "j has 0 rows for 2026-05-04T12:00:02Z"},
		{"all are missing", func([]jobs.Run) []jobs.Run { return nil }, "j has 0 rows for 2026-05-04T12:00:00Z"},
		{"twice", func(h []jobs.Run) []jobs.Run { return append(h, run(1)) }, "j has 2 rows"},
		{"a hole beyond the window", func(h []jobs.Run) []jobs.Run { return append(h, run(4)) }, "j has 0 rows for 2026-05-04T12:00:03Z"},
		{"not an instant", func(h []jobs.Run) []jobs.Run {
			h[1].ScheduledAt = *at(1500)
			return h
		}, "not in its calendar"},
		{"the identity says another instant", func(h []jobs.Run) []jobs.Run {
			h[1].Occurrence = jobs.ScheduledOccurrence(*at(0))
			return h
		}, `run 1 (j): occurrence "s:2026-05-04T12:00:00Z"`},
		{"a job without a schedule", func(h []jobs.Run) []jobs.Run {
			h[1].Job = "k"
			return h
		}, `the job "k", which has no schedule`},
	})
	require.NoError(t, check.Calendar(ledger(), map[string]string{"j": "* * * * * *"}, check.Window{}))
	require.ErrorContains(t, check.Calendar(nil, map[string]string{"j": "* * * * * *"}, check.Window{}), "j has no rows")
	hole := ledger()
	hole = append(hole[:1], hole[2])
	require.ErrorContains(t, check.Calendar(hole, map[string]string{"j": "* * * * * *"}, check.Window{}), "j has 0 rows")
	more := append(ledger(), run(1), run(1))
	more[3].Attempt = 2
	more[4].Occurrence = jobs.ManualOccurrence("x")
	require.NoError(t, checker(more), "retries and manual runs are not in the calendar")
}

func TestCounting(t *testing.T) {
	t.Parallel()
	h := ledger()
	h[0].Replica, h[1].Replica, h[1].Outcome = "b", "", jobs.OutcomeSkipped
	ran, all := check.Share(h)
	assert.Equal(t, []int{2, 3}, []int{ran, all})
	assert.Equal(t, map[string]int{"a": 1, "b": 1}, check.PerReplica(h))
}
