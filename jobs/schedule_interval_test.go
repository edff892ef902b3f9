package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestShortestInterval(t *testing.T) {
	t.Parallel()
	blackout, err := jobs.ParseBlackout("10:00", "11:00", time.UTC)
	require.NoError(t, err)
	for _, tt := range []struct {
		texts []string
		o     jobs.ScheduleOptions
		want  time.Duration
	}{
		{[]string{"* * * * *"}, jobs.ScheduleOptions{}, time.Minute},
		{[]string{"*/7 * * * *"}, jobs.ScheduleOptions{}, 4 * time.Minute}, // from 56 to the full hour
		{[]string{"0 9,17 * * *"}, jobs.ScheduleOptions{}, 8 * time.Hour},
		{[]string{"@every 15m"}, jobs.ScheduleOptions{}, 15 * time.Minute},
		{[]string{"0 6 * * *"}, jobs.ScheduleOptions{}, 24 * time.Hour},
		{[]string{"0 6 * * *"}, jobs.ScheduleOptions{Timezone: "Europe/Berlin"}, 23 * time.Hour}, // when summer time begins
		{[]string{"0 0 1 * *"}, jobs.ScheduleOptions{}, 28 * 24 * time.Hour},
		{[]string{"*/5 * * * * *"}, jobs.ScheduleOptions{Seconds: true}, 5 * time.Second},
		{[]string{"0 * * * *", "50 6 1 7 *"}, jobs.ScheduleOptions{}, 10 * time.Minute}, // once a year, one is close
		{[]string{"50 6 1 7 *", "0 * * * *"}, jobs.ScheduleOptions{}, 10 * time.Minute},
		{[]string{"0 * * * *", "30 10 * * *"}, jobs.ScheduleOptions{Calendars: jobs.Calendars{Blackout: []jobs.Blackout{blackout}}}, time.Hour},
		{[]string{"0 6 * * *"}, jobs.ScheduleOptions{From: instant(t, "2030-01-01T00:00:00Z"), Until: instant(t, "2030-01-02T00:00:00Z")}, 0},
		{[]string{"0 6 * * *"}, jobs.ScheduleOptions{Until: instant(t, "2020-01-02T00:00:00Z")}, 0},
	} {
		s, err := jobs.ParseSchedules(tt.texts, tt.o)
		require.NoError(t, err, tt.texts)
		assert.Equal(t, tt.want, s.ShortestInterval(), "%q", tt.texts)
	}
}
