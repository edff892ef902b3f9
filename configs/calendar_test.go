package configs

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the fixture says becomes what the schedules do.
func TestSchedulesOfAFile(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/schedules.yaml")
	require.NoError(t, err)
	config, err := Parse("schedules.yaml", data, fixtureOptions())
	require.NoError(t, err)
	after := time.Date(2026, 9, 11, 12, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{
		"list":    "2026-09-12T11:00:00+02:00", // the default of a variable
		"monthly": "2026-09-30T06:00:00+02:00",
		"either":  "2026-09-14T06:00:00+02:00", // the second Monday
		"bounded": "2026-09-11T15:00:00+02:00",
		"fair":    "2026-09-14T09:00:00+02:00", // behind a blackout
	} {
		job, err := config.Job(name)
		require.NoError(t, err)
		assert.Equal(t, want, job.Schedule.Next(after).Format(time.RFC3339), name)
	}
	bounded, err := config.Job("bounded")
	require.NoError(t, err)
	assert.Equal(t, "2026-05-01T00:00:00+02:00", bounded.Schedule.Next(time.Time{}).Format(time.RFC3339), "a date in the zone")
	assert.Zero(t, bounded.Schedule.Next(time.Date(2026, 12, 31, 22, 0, 0, 0, time.UTC)), "until is not in it")
	assert.Equal(t, 30*time.Second, bounded.Jitter, "from defaults")
	spread, err := config.Job("spread")
	require.NoError(t, err)
	assert.Equal(t, 12*time.Hour, spread.Jitter)
	byHand, err := config.Job("by-hand")
	require.NoError(t, err)
	assert.Nil(t, byHand.Schedule)
}

// The hash changes with the dates of a calendar file, and with everything that decides when a job runs; neither with
// what describes a date nor with what a calendar is called.
func TestTheHashCoversCalendars(t *testing.T) {
	t.Parallel()
	const event = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:%s\nSUMMARY:%s\nEND:VEVENT\nEND:VCALENDAR\n"
	hash := func(yaml, file string) string {
		config, err := Parse("c.yaml", []byte(yaml), Options{ReadFile: func(string) ([]byte, error) {
			if file == "" {
				return nil, fs.ErrNotExist
			}
			return []byte(file), nil
		}})
		require.NoError(t, err, yaml)
		return config.Hash
	}
	const calendar = "calendars: {de: {file: de.ics}}\njobs: {a: {run: x, schedule: '@daily', calendars: {exclude: [de]}}}\n"
	base := hash(calendar, fmt.Sprintf(event, "20261225", "Christmas"))
	assert.Equal(t, base, hash(calendar, fmt.Sprintf(event, "20261225", "Weihnachten")))
	assert.Equal(t, base, hash(strings.NewReplacer("{de:", "{eu:", "[de]", "[eu]").Replace(calendar),
		fmt.Sprintf(event, "20261225", "Christmas")))
	assert.NotEqual(t, base, hash(calendar, fmt.Sprintf(event, "20261226", "Christmas")))

	plain := "jobs: {a: {run: x, schedule: '@daily'%s}}\n"
	seen := map[string]string{}
	for _, keys := range []string{
		"", ", jitter: 1m", ", from: 2026-05-01", ", until: 2100-01-01", ", calendars: {blackout: [{from: '22:00', until: '23:00'}]}",
	} {
		h := hash(fmt.Sprintf(plain, keys), "")
		assert.NotContains(t, seen, h, "%s and %s", keys, seen[h])
		seen[h] = keys
	}
	assert.Equal(t, hash(fmt.Sprintf(plain, ""), ""), hash(fmt.Sprintf(plain, ", jitter: 0s, day_match: all, calendars: {shift: none}"), ""),
		"what changes nothing")
}
