package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The clocks of Berlin go back on 2026-10-25 and forward on 2027-03-28.
func TestClockChanges(t *testing.T) {
	t.Parallel()
	const back, forward = "2026-10-25 twice ", "2027-03-28 not "
	for _, c := range []struct {
		text string
		o    ScheduleOptions
		want []string
	}{
		{"*/30 2 * * *", ScheduleOptions{}, []string{back + "02:00", forward + "02:00"}},
		{"30-40 2 * * *", ScheduleOptions{}, []string{back + "02:30", forward + "02:30"}},
		{"0 */2 * * *", ScheduleOptions{}, []string{back + "02:00", forward + "02:00"}},
		{"*/30 2 * * MON", ScheduleOptions{}, nil},
		{"*/30 2 25 10 *", ScheduleOptions{}, []string{back + "02:00"}},
		{"*/30 3 * * *", ScheduleOptions{}, nil},
		{"*/30 * * * *", ScheduleOptions{}, nil},
		{"@every 30m", ScheduleOptions{}, nil},
		{"@daily", ScheduleOptions{}, nil},
		{"30 2 * * *", ScheduleOptions{}, nil},
		{"30 2 * * *", ScheduleOptions{DST: DSTSkip}, []string{forward + "02:30 fixed"}},
		{"30 2 * * *", ScheduleOptions{DST: DSTBoth}, []string{back + "02:30 fixed"}},
		{"*/30 2 * * *", ScheduleOptions{Timezone: "UTC"}, nil},
		{"*/30 2 * * *", ScheduleOptions{Timezone: "Asia/Tokyo"}, nil},
		{"*/30 2 * * *", ScheduleOptions{Until: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{back + "02:00"}},
		{"*/30 2 * * *", ScheduleOptions{From: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{forward + "02:00"}},
	} {
		if c.o.Timezone == "" {
			c.o.Timezone = "Europe/Berlin"
		}
		s, err := ParseSchedule(c.text, c.o)
		require.NoError(t, err)
		var have []string
		from := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
		for _, change := range s.ClockChanges(from, from.AddDate(1, 0, -60)) {
			word := map[bool]string{true: " twice ", false: " not "}[change.Twice]
			text := change.At.Format(time.DateOnly) + word + change.Local
			if change.Fixed {
				text += " fixed"
			}
			have = append(have, text)
		}
		assert.Equal(t, c.want, have, c.text)
	}
}

// TestClockChangesAreWhatNextDoes counts the instants of the days on which clocks change, in several zones.
func TestClockChangesAreWhatNextDoes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	changes := 0
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana"} {
		for _, text := range []string{"*/10 1 * * *", "*/10 2 * * *", "5-55/10 0,1,2 * * *", "15 1,2 * * *"} {
			for _, dst := range []DST{DSTOnce, DSTSkip, DSTBoth} {
				s, err := ParseSchedule(text, ScheduleOptions{Timezone: zone, DST: dst})
				require.NoError(t, err)
				found := map[string]bool{}
				for _, c := range s.ClockChanges(start, start.AddDate(1, 0, 0)) {
					found[c.At.Add(-12*time.Hour).Format(time.DateOnly)] = true
					found[c.At.Format(time.DateOnly)] = true
					changes++
				}
				usual := len(instantsOf(s, time.Date(2026, 7, 7, 0, 0, 0, 0, s.Location())))
				for day := start.In(s.Location()).AddDate(0, 0, 2); day.Year() == 2026; day = day.AddDate(0, 0, 1) {
					y, m, d := day.Date()
					if n := len(instantsOf(s, time.Date(y, m, d, 0, 0, 0, 0, s.Location()))); n != usual {
						date := day.Format(time.DateOnly)
						merged := dst != DSTSkip && n < usual && text == "15 1,2 * * *" // two made-up runs at one instant
						assert.True(t, found[date] || merged, "%s %s %s %s: %d instants, usually %d", zone, text, dst, date, n, usual)
					}
				}
			}
		}
	}
	assert.Greater(t, changes, 40)
}

func instantsOf(s *Schedule, midnight time.Time) []time.Time {
	at, _ := s.Between(midnight.Add(-time.Second), midnight.AddDate(0, 0, 1).Add(-time.Second), 1000)
	return at
}
