package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// What each policy does with missing and doubled local times.
func TestDSTPolicies(t *testing.T) {
	t.Parallel()
	const (
		springNY, autumnNY = "2026-03-07T12:00:00-05:00", "2026-10-31T12:00:00-04:00"
		once, skip, both   = jobs.DSTOnce, jobs.DSTSkip, jobs.DSTBoth
	)
	cases := []struct {
		name, text, zone, after string
		dst                     jobs.DST
		want                    []string
	}{
		{"gap", "30 2 * * *", "America/New_York", springNY, once, []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"gap", "30 2 * * *", "America/New_York", springNY, both, []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"gap", "30 2 * * *", "America/New_York", springNY, skip, []string{"2026-03-09T02:30:00-04:00"}},
		{"two in one gap", "10,50 2 * * *", "America/New_York", springNY, once, []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:10:00-04:00"}},
		{"gap and a match right after it", "0 2,3 * * *", "America/New_York", springNY, both, []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"}},
		{"gap and a match right after it", "0 2,3 * * *", "America/New_York", springNY, skip, []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"}},
		{"overlap", "30 1 * * *", "America/New_York", autumnNY, once, []string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"overlap", "30 1 * * *", "America/New_York", autumnNY, skip, []string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"overlap", "30 1 * * *", "America/New_York", autumnNY, both, []string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-02T01:30:00-05:00"}},
		{"asked during the second pass", "30 1 * * *", "America/New_York", "2026-11-01T01:00:00-05:00", once, []string{"2026-11-02T01:30:00-05:00"}},
		{"edge of the overlap", "0 1,2 * * *", "America/New_York", autumnNY, once, []string{"2026-11-01T01:00:00-04:00", "2026-11-01T02:00:00-05:00"}},
		{"interval ignores the policy", "*/30 2 * * *", "America/New_York", springNY, once, []string{"2026-03-09T02:00:00-04:00"}},
		{
			"interval ignores the policy", "*/30 1 * * *", "America/New_York", autumnNY, skip,
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00"},
		},
		{"a range of one is a range", "30-30 2 * * *", "America/New_York", springNY, once, []string{"2026-03-09T02:30:00-04:00"}},

		{"gap at midnight", "0 0 * * *", "America/Santiago", "2026-09-05T12:00:00-04:00", skip, []string{"2026-09-07T00:00:00-03:00"}},
		{"doubled hour before midnight", "30 23 * * *", "America/Santiago", "2026-04-04T12:00:00-03:00", once, []string{"2026-04-04T23:30:00-03:00", "2026-04-05T23:30:00-04:00"}},
		{"doubled hour before midnight", "30 23 * * 6", "America/Santiago", "2026-04-04T12:00:00-03:00", both, []string{"2026-04-04T23:30:00-03:00", "2026-04-04T23:30:00-04:00", "2026-04-11T23:30:00-04:00"}},
		{"doubled midnight", "0 0 * * *", "America/Havana", "2026-10-31T12:00:00-04:00", once, []string{"2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"}},
		{"doubled midnight", "0 0 1 * *", "America/Havana", "2026-10-31T12:00:00-04:00", both, []string{"2026-11-01T00:00:00-04:00", "2026-11-01T00:00:00-05:00", "2026-12-01T00:00:00-05:00"}},
		{"gap over the first of a month", "0 0 1 * *", "America/Asuncion", "2017-09-15T12:00:00-04:00", skip, []string{"2017-11-01T00:00:00-03:00"}},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", skip, []string{"2026-10-05T02:15:00+11:00"}},
		{"half an hour doubled", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00+11:00", both, []string{"2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30", "2026-04-06T01:45:00+10:30"}},
		{"two hours", "0 2 * * *", "Antarctica/Troll", "2026-03-28T12:00:00Z", once, []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
		{"negative summer time", "30 1 * * *", "Europe/Dublin", "2026-03-28T12:00:00Z", once, []string{"2026-03-29T02:00:00+01:00", "2026-03-30T01:30:00+01:00"}},
		{"negative summer time", "30 1 * * *", "Europe/Dublin", "2026-10-24T12:00:00+01:00", both, []string{"2026-10-25T01:30:00+01:00", "2026-10-25T01:30:00Z"}},
		{"a day that was not", "0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", once, []string{"2011-12-31T12:00:00+14:00"}},
		{"a day that was not", "0 0 31 12 *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", once, []string{"2011-12-31T00:00:00+14:00"}},
		{"a day that was twice", "0 12 * * *", "Pacific/Kwajalein", "1969-09-30T11:00:00+11:00", once, []string{"1969-09-30T12:00:00+11:00", "1969-10-01T12:00:00-12:00"}},
		{"exactly three hours", "0 1 * * *", "Antarctica/Syowa", "1957-01-28T12:00:00Z", once, []string{"1957-01-29T03:00:00+03:00", "1957-01-30T01:00:00+03:00"}},
	}
	for _, c := range cases {
		t.Run(c.name+" "+string(c.dst)+" "+c.text, func(t *testing.T) {
			t.Parallel()
			assertNext(t, parse(t, c.text, jobs.ScheduleOptions{Timezone: c.zone, DST: c.dst}), c.after, c.want...)
		})
	}
}

// The text decides, not the set of values: only a fixed schedule makes up for the missing 02:30.
func TestFixedOrInterval(t *testing.T) {
	t.Parallel()
	fixed := []string{"30 2 * * *", "30,45 2 * * *", "30 2,14 */2 1-12 0-6", "30 2 ? * ?", "seconds 0,15 30 2 * * *"}
	interval := []string{
		"30-30 2 * * *", "30/30 2 * * *", "*/30 2 * * *", "30 2-2 * * *", "30 2/12 * * *", "30,31-31 2 * * *",
		"seconds */15 30 2 * * *", "seconds 0-0 30 2 * * *", "seconds 0/30 30 2 * * *",
	}
	madeUp := func(text string) bool {
		text, seconds := strings.CutPrefix(text, "seconds ")
		s := parse(t, text, jobs.ScheduleOptions{Timezone: "America/New_York", Seconds: seconds})
		gap := instant(t, "2026-03-08T03:00:00-04:00")
		return s.Next(gap.Add(-time.Second)).Equal(gap)
	}
	for _, text := range fixed {
		assert.True(t, madeUp(text), text)
	}
	for _, text := range interval {
		assert.False(t, madeUp(text), text)
	}
}

// Offsets of local mean time have seconds; New York's clocks went back by 3:58 on 1883-11-18.
func TestNextWithOffsetsOfSeconds(t *testing.T) {
	t.Parallel()
	s := parse(t, "0 0 12 * * *", jobs.ScheduleOptions{Timezone: "America/New_York", Seconds: true})
	assert.Equal(t, "1883-11-17T16:56:02Z", s.Next(instant(t, "1883-11-17T12:00:00Z")).UTC().Format(time.RFC3339))
	assert.Equal(t, "1883-11-18T16:56:02Z", s.Next(instant(t, "1883-11-17T17:00:00Z")).UTC().Format(time.RFC3339))
	assert.Equal(t, "1883-11-19T17:00:00Z", s.Next(instant(t, "1883-11-18T16:56:02Z")).UTC().Format(time.RFC3339), "doubled noon: once")
}

// Rows on which robfig/cron is wrong, hangs or panics, with the numbers of its issues.
func TestRobfigRegressions(t *testing.T) {
	t.Parallel()
	t.Run("157 midnight gap eats the month", func(t *testing.T) {
		t.Parallel()
		s := parse(t, "0 9 10 * *", jobs.ScheduleOptions{Timezone: "America/Sao_Paulo"})
		assertNext(t, s, "2018-10-17T12:00:00-03:00", "2018-11-10T09:00:00-02:00", "2018-12-10T09:00:00-02:00")
	})
	t.Run("470 and 554 TZ= without a schedule panics", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"TZ=", "TZ=0", "CRON_TZ=UTC", "TZ=TZ=TZ="} {
			_, err := jobs.ParseSchedule(text, jobs.ScheduleOptions{})
			require.Error(t, err, text)
		}
	})
	t.Run("543 step beyond the range is taken", func(t *testing.T) {
		t.Parallel()
		_, err := jobs.ParseSchedule("*/90 * * * *", jobs.ScheduleOptions{})
		require.Error(t, err)
	})
	t.Run("a negative @every runs every second", func(t *testing.T) {
		t.Parallel()
		_, err := jobs.ParseSchedule("@every -5s", jobs.ScheduleOptions{})
		require.Error(t, err)
	})
	t.Run("@every counts from the start of the process", func(t *testing.T) {
		t.Parallel()
		assertNext(t, parse(t, "@every 15m", jobs.ScheduleOptions{}), "2026-05-01T10:07:31Z", "2026-05-01T10:15:00Z", "2026-05-01T10:30:00Z")
	})
	t.Run("a missing hour skips the day", func(t *testing.T) {
		t.Parallel()
		s := parse(t, "30 2 * * *", jobs.ScheduleOptions{Timezone: "America/New_York"})
		assertNext(t, s, "2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00")
	})
	t.Run("a doubled hour runs twice", func(t *testing.T) {
		t.Parallel()
		s := parse(t, "30 1 * * *", jobs.ScheduleOptions{Timezone: "America/New_York"})
		assertNext(t, s, "2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00")
	})
	t.Run("five years are not enough for a leap day", func(t *testing.T) {
		t.Parallel()
		assertNext(t, parse(t, "0 0 29 2 *", jobs.ScheduleOptions{}), "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z")
	})
}

func TestNextAtTheEdges(t *testing.T) {
	t.Parallel()
	daily := parse(t, "0 2 * * *", jobs.ScheduleOptions{})
	at := instant(t, "2026-05-01T02:00:00Z")
	assert.Equal(t, at, daily.Next(at.Add(-time.Nanosecond)))
	assert.Equal(t, at.AddDate(0, 0, 1), daily.Next(at), "strictly after")
	assert.Equal(t, at.AddDate(0, 0, 1), daily.Next(at.Add(999*time.Millisecond)))
	assert.Equal(t, "0001-01-01T02:00:00Z", daily.Next(time.Time{}).Format(time.RFC3339), "the zero time is an instant like others")

	last := instant(t, "9999-12-31T02:00:00Z")
	assert.Equal(t, last, daily.Next(last.Add(-time.Second)))
	for _, text := range []string{"0 2 * * *", "@every 1w"} {
		s := parse(t, text, jobs.ScheduleOptions{Timezone: "America/New_York"})
		assert.Zero(t, s.Next(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)))
		assert.Zero(t, s.Next(time.Unix(1<<62, 0)))
		assert.False(t, s.Next(time.Unix(-1<<62, 0)).IsZero())
	}
	before := parse(t, "@every 7s", jobs.ScheduleOptions{})
	assertNext(t, before, "1969-12-31T23:59:50Z", "1969-12-31T23:59:53Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:07Z")
}

// The Go function time.ZoneBounds gives an end before the instant itself on the last day of a leap year.
func TestNextOnTheLastDayOfALeapYear(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"America/New_York", "Africa/Cairo", "Australia/Sydney", "Europe/Dublin"} {
		s := parse(t, "0 */6 * * *", jobs.ScheduleOptions{Timezone: zone})
		at := time.Date(2028, 12, 30, 0, 0, 0, 0, s.Location())
		for range 12 {
			next := s.Next(at)
			require.Equal(t, 6*time.Hour, next.Sub(at), "%s", at)
			at = next
		}
	}
}

func TestBetween(t *testing.T) {
	t.Parallel()
	s := parse(t, "0 * * * *", jobs.ScheduleOptions{})
	after, until := instant(t, "2026-05-01T10:00:00Z"), instant(t, "2026-05-01T13:00:00Z")

	at, more := s.Between(after, until, 10)
	assert.False(t, more)
	require.Len(t, at, 3, "without the first bound, with the second")
	assert.Equal(t, after.Add(time.Hour), at[0])
	assert.Equal(t, until, at[2])

	at, more = s.Between(after, until, 3)
	assert.False(t, more, "exactly as many as allowed")
	assert.Len(t, at, 3)

	at, more = s.Between(after, until, 2)
	assert.True(t, more)
	assert.Len(t, at, 2)

	at, more = s.Between(after, until, 0)
	assert.True(t, more)
	assert.Empty(t, at)

	at, more = s.Between(until, after, 10)
	assert.False(t, more)
	assert.Empty(t, at)
}
