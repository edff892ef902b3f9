package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}

func TestWhyAnInstantIsAbsent(t *testing.T) {
	t.Parallel()
	berlin, err := jobs.LoadZone("Europe/Berlin")
	require.NoError(t, err)
	daily, err := jobs.ParseBlackout("22:00", "06:00", berlin)
	require.NoError(t, err)
	once, err := jobs.ParseBlackout("2026-05-01", "2026-05-03", berlin)
	require.NoError(t, err)
	holidays, err := jobs.ParseCalendar("holidays", jobs.CalendarOptions{Dates: []string{"12-25"}})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		text string
		o    jobs.ScheduleOptions
		at   string
		why  jobs.Absence
		what string
	}{
		"it is there":     {"30 2 * * *", jobs.ScheduleOptions{}, "2026-01-01T02:30:00Z", jobs.AbsentNot, ""},
		"the fields":      {"30 2 * * *", jobs.ScheduleOptions{}, "2026-01-01T02:31:00Z", jobs.AbsentFields, "30 2 * * *"},
		"the second time": {"30 2 * * *", jobs.ScheduleOptions{Timezone: "Europe/Berlin"}, "2026-10-25T01:30:00Z", jobs.AbsentDST, "once"},
		"both times": {
			"30 2 * * *", jobs.ScheduleOptions{Timezone: "Europe/Berlin", DST: jobs.DSTBoth}, "2026-10-25T01:30:00Z", jobs.AbsentNot, "",
		},
		"a calendar": {
			"0 6 * * *",
			jobs.ScheduleOptions{Calendars: jobs.Calendars{Exclude: []*jobs.Calendar{holidays}, Shift: jobs.ShiftNext}},
			"2026-12-25T06:00:00Z", jobs.AbsentCalendar, "exclude holidays; shift next",
		},
		"from": {
			"0 6 * * *", jobs.ScheduleOptions{From: moment(t, "2026-05-01T00:00:00Z")}, "2026-04-30T06:00:00Z", jobs.AbsentFrom, "2026-05-01T00:00:00Z",
		},
		"until": {
			"0 6 * * *", jobs.ScheduleOptions{Until: moment(t, "2026-05-01T06:00:00Z")}, "2026-05-01T06:00:00Z", jobs.AbsentUntil, "2026-05-01T06:00:00Z",
		},
		"a daily blackout": {
			"0 5 * * *",
			jobs.ScheduleOptions{Timezone: "Europe/Berlin", Calendars: jobs.Calendars{Blackout: []jobs.Blackout{once, daily}}, From: moment(t, "2000-01-01T00:00:00Z")},
			"2026-04-01T03:00:00Z", jobs.AbsentBlackout, "daily 22:00-06:00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "a daily blackout" {
				c.text = "0 5,12 * * *" // else it never fires
			}
			s, err := jobs.ParseSchedule(c.text, c.o)
			require.NoError(t, err)
			why, what := s.Absent(moment(t, c.at))
			assert.Equal(t, c.why, why)
			assert.Equal(t, c.what, what)
		})
	}
}

// The last instant is the one whose next one is behind the moment, for schedules of any rhythm.
func TestTheLastInstant(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "@every 7s", "0 0 1 1 *", "*/10 9-17 * * 1-5"} {
		s, err := jobs.ParseSchedule(text, jobs.ScheduleOptions{Timezone: "Europe/Berlin"})
		require.NoError(t, err)
		for _, from := range []string{"2026-03-29T01:00:00Z", "2026-10-25T01:30:00Z", "2027-01-01T00:00:00Z", "2026-06-15T12:34:56Z"} {
			at := moment(t, from)
			last := s.Last(at)
			require.False(t, last.IsZero(), text)
			assert.False(t, last.After(at), text)
			assert.True(t, s.Next(last).After(at), "%s: %v is not the last one at %v", text, last, at)
			assert.Equal(t, last, s.Next(last.Add(-time.Second)), "%s: %v is none", text, last)
		}
	}
	s, err := jobs.ParseSchedule("0 0 * * *", jobs.ScheduleOptions{From: moment(t, "2026-05-01T00:00:00Z")})
	require.NoError(t, err)
	assert.True(t, s.Last(moment(t, "2026-04-30T12:00:00Z")).IsZero())
}

func TestLocalTimes(t *testing.T) {
	t.Parallel()
	berlin, err := jobs.LoadZone("Europe/Berlin")
	require.NoError(t, err)
	wall := func(text string) jobs.LocalTime {
		at, err := time.Parse("2006-01-02 15:04", text)
		require.NoError(t, err)
		return jobs.LocalTimeIn(berlin, at)
	}
	assert.Equal(t, []time.Time{moment(t, "2026-01-01T01:30:00Z").In(berlin)}, wall("2026-01-01 02:30").At)
	assert.Equal(t, []time.Time{moment(t, "2026-10-25T00:30:00Z").In(berlin), moment(t, "2026-10-25T01:30:00Z").In(berlin)}, wall("2026-10-25 02:30").At)
	gap := wall("2026-03-29 02:30")
	assert.Empty(t, gap.At)
	assert.Equal(t, moment(t, "2026-03-29T01:00:00Z").In(berlin), gap.Gap)
	s, err := jobs.ParseSchedule("30 2 * * *", jobs.ScheduleOptions{Timezone: "Europe/Berlin"})
	require.NoError(t, err)
	assert.True(t, s.MadeUp(gap.Gap))
	assert.False(t, s.MadeUp(moment(t, "2026-03-30T00:30:00Z")))
}
