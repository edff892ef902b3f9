package jobs_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// testdata/calendar.tsv holds the right answers: schedule, zone, an instant, and the instants that follow it.
func TestCalendarOfRightAnswers(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/calendar.tsv")
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSuffix(line, "\n"); line == "" || line[0] == '#' {
			continue
		}
		rows++
		cells := strings.Split(line, "\t")
		require.GreaterOrEqual(t, len(cells), 4, line)
		t.Run(cells[0]+" "+cells[1], func(t *testing.T) {
			t.Parallel()
			assertNext(t, parse(t, cells[0], jobs.ScheduleOptions{Timezone: cells[1]}), cells[2], cells[3:]...)
		})
	}
	assert.GreaterOrEqual(t, rows, 21, "the table was cut")
}

// parse is for schedules that a test knows to be right.
func parse(tb testing.TB, text string, o jobs.ScheduleOptions) *jobs.Schedule {
	tb.Helper()
	s, err := jobs.ParseSchedule(text, o)
	require.NoError(tb, err)
	return s
}

func instant(tb testing.TB, text string) time.Time {
	tb.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(tb, err)
	return at
}

// assertNext compares the text, so that the zone of the answer counts as well as its instant.
func assertNext(t *testing.T, s *jobs.Schedule, after string, want ...string) {
	t.Helper()
	at := instant(t, after)
	for i, w := range want {
		at = s.Next(at)
		got := at.Format(time.RFC3339)
		if strings.HasSuffix(w, "+00:00") {
			got = strings.Replace(got, "Z", "+00:00", 1)
		}
		assert.Equal(t, w, got, "answer %d after %s", i+1, after)
	}
}
