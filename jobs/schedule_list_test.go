package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func parseList(tb testing.TB, o jobs.ScheduleOptions, texts ...string) *jobs.Schedule {
	tb.Helper()
	s, err := jobs.ParseSchedules(texts, o)
	require.NoError(tb, err)
	return s
}

// faultOf is the ScheduleError of texts that are no schedule.
func faultOf(tb testing.TB, o jobs.ScheduleOptions, texts ...string) jobs.ScheduleError {
	tb.Helper()
	s, err := jobs.ParseSchedules(texts, o)
	require.Nil(tb, s)
	var fault *jobs.ScheduleError
	require.ErrorAs(tb, err, &fault)
	return *fault
}

func TestAListIsTheUnionOfItsInstants(t *testing.T) {
	t.Parallel()
	s := parseList(t, jobs.ScheduleOptions{}, "0 9 * * MON-FRI", "0 11 * * SAT", "0 9 1 * *", "@every 36h")
	assertNext(t, s, "2026-05-01T08:00:00Z", // a Friday, and the first
		"2026-05-01T09:00:00Z", "2026-05-02T11:00:00Z", "2026-05-02T12:00:00Z", "2026-05-04T00:00:00Z", "2026-05-04T09:00:00Z")
	assert.Equal(t, "0 9 * * MON-FRI; 0 11 * * SAT; 0 9 1 * *; @every 36h", s.String())
	assert.Len(t, s.Texts(), 4)

	minutes := parseList(t, jobs.ScheduleOptions{}, "*/2 * * * *", "*/3 * * * *", "*/2 * * * *")
	at, _ := minutes.Between(instant(t, "2026-05-01T00:00:00Z"), instant(t, "2026-05-01T01:00:00Z"), 100)
	assert.Len(t, at, 40, "30 even ones, 20 multiples of three, 10 of both")
}

// Each item of a list has its own class: the fixed one is made up for, the interval one is not.
func TestAListHasAClassForEachItem(t *testing.T) {
	t.Parallel()
	o := jobs.ScheduleOptions{Timezone: "America/New_York"}
	assertNext(t, parseList(t, o, "15 2 * * *", "*/30 2,4 * * *"), "2026-03-08T00:00:00-05:00",
		"2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00", "2026-03-08T04:30:00-04:00", "2026-03-09T02:00:00-04:00")
}

func TestErrorsOfAListNameTheItem(t *testing.T) {
	t.Parallel()
	fault := faultOf(t, jobs.ScheduleOptions{}, "@daily", "0 25 * * *")
	assert.Equal(t, 1, fault.Item)
	assert.Equal(t, 2, fault.Offset)
	fault = faultOf(t, jobs.ScheduleOptions{}, "0 0 31 2 *", "@daily")
	assert.Equal(t, 0, fault.Item)
	assert.Equal(t, jobs.CodeScheduleNever, fault.Code)
	assert.Equal(t, -1, faultOf(t, jobs.ScheduleOptions{}).Item)
}

func TestHashOfAList(t *testing.T) {
	t.Parallel()
	o := jobs.ScheduleOptions{}
	one := parse(t, "0 2 * * *", o).Hash()
	assert.Equal(t, one, parseList(t, o, "0 2 * * *").Hash(), "a list of one is that one")
	assert.Equal(t, one, parseList(t, o, "0 2 * * *", "00 02 * * ?").Hash(), "the same twice")
	both := parseList(t, o, "0 2 * * *", "@every 1h").Hash()
	assert.Equal(t, both, parseList(t, o, "@every 60m", "0 2 * * *").Hash(), "the order says nothing")
	assert.NotEqual(t, one, both)
}

func TestLongNames(t *testing.T) {
	t.Parallel()
	for long, short := range map[string]string{
		"0 0 * * monday":              "0 0 * * MON",
		"0 0 * january-March *":       "0 0 * 1-3 *",
		"0 0 * * FRIDAY-monday/2":     "0 0 * * 5-1/2",
		"0 0 * may,September SUNDAY":  "0 0 * 5,9 7",
		"0 0 * * wednesday,thursday":  "0 0 * * 3-4",
		"0 0 ? december saturday,TUE": "0 0 ? 12 6,2",
	} {
		assert.Equal(t, parse(t, short, jobs.ScheduleOptions{}).Hash(), parse(t, long, jobs.ScheduleOptions{}).Hash(), long)
	}
}

func TestDayMatch(t *testing.T) {
	t.Parallel()
	all := jobs.ScheduleOptions{DayMatch: jobs.DayMatchAll}
	assertNext(t, parse(t, "0 0 13 * FRI", all), "2026-05-01T00:00:00Z", "2026-11-13T00:00:00Z", "2027-08-13T00:00:00Z")
	assertNext(t, parse(t, "0 0 1-7 * MON", all), "2026-05-01T00:00:00Z", "2026-05-04T00:00:00Z", "2026-06-01T00:00:00Z")
	assertNext(t, parse(t, "0 0 29 2 MON", all), "2026-05-01T00:00:00Z", "2044-02-29T00:00:00Z", "2072-02-29T00:00:00Z", "2112-02-29T00:00:00Z")
	assertNext(t, parse(t, "0 0 13,* * FRI", all), "2026-05-01T00:00:00Z", "2026-05-08T00:00:00Z")

	fault := faultOf(t, all, "0 0 31 2,4 MON")
	assert.Equal(t, `"0 0 31 2,4 MON" never fires: no date matches both day fields, as day_match: all demands`, fault.Message)
	assert.Equal(t, jobs.CodeScheduleNever, fault.Code)
	fault = faultOf(t, jobs.ScheduleOptions{DayMatch: "both"}, "@daily")
	assert.Equal(t, jobs.ScheduleError{Code: jobs.CodeDayMatch, Message: `day_match "both" is not one of any, all`, Length: 4}, fault)

	plain := parse(t, "0 0 13 * FRI", jobs.ScheduleOptions{}).Hash()
	assert.Equal(t, plain, parse(t, "0 0 13 * FRI", jobs.ScheduleOptions{DayMatch: jobs.DayMatchAny}).Hash())
	assert.NotEqual(t, plain, parse(t, "0 0 13 * FRI", all).Hash())
	assert.Equal(t, parse(t, "0 0 13 * *", jobs.ScheduleOptions{}).Hash(), parse(t, "0 0 13 * *", all).Hash(), "one day field: no difference")
}

func TestFromAndUntil(t *testing.T) {
	t.Parallel()
	berlin := parse(t, "@daily", jobs.ScheduleOptions{Timezone: "Europe/Berlin"}).Location()
	moment := func(text string) time.Time {
		at, err := jobs.ParseMoment(text, berlin)
		require.NoError(t, err)
		return at
	}
	o := jobs.ScheduleOptions{Timezone: "Europe/Berlin", From: moment("2026-05-02"), Until: moment("2026-05-04T09:00:00+02:00")}
	s := parse(t, "0 0,9 * * *", o)
	at, more := s.Between(time.Time{}, instant(t, "2030-01-01T00:00:00Z"), 100)
	assert.False(t, more)
	require.Len(t, at, 5)
	assert.Equal(t, "2026-05-02T00:00:00+02:00", at[0].Format(time.RFC3339), "from is in")
	assert.Equal(t, "2026-05-04T00:00:00+02:00", at[4].Format(time.RFC3339), "until is not")
	assert.Zero(t, s.Next(at[4]))

	o.From = o.From.Add(time.Nanosecond)
	assert.Equal(t, "2026-05-02T09:00:00+02:00", parse(t, "0 0,9 * * *", o).Next(time.Time{}).Format(time.RFC3339), "a moment too late")
	o.Until = o.Until.Add(time.Nanosecond)
	assert.Equal(t, "2026-05-04T09:00:00+02:00", parse(t, "0 9 * * MON", o).Next(time.Time{}).Format(time.RFC3339), "a moment more")

	assert.NotEqual(t, s.Hash(), parse(t, "0 0,9 * * *", o).Hash())
}

func TestFromAndUntilFaults(t *testing.T) {
	t.Parallel()
	may := instant(t, "2026-05-01T00:00:00Z")
	fault := faultOf(t, jobs.ScheduleOptions{From: may, Until: may}, "@daily")
	assert.Equal(t, jobs.ScheduleError{Code: jobs.CodeWindow, Item: -1, Message: "until (2026-05-01T00:00:00Z) is not after from (2026-05-01T00:00:00Z)"}, fault)
	fault = faultOf(t, jobs.ScheduleOptions{From: may, Until: may.Add(time.Hour)}, "0 2 * * *")
	assert.Equal(t, jobs.ScheduleError{Code: jobs.CodeScheduleNever, Item: -1, Message: `"0 2 * * *" never fires: no instant lies between from and until`}, fault)
}

// A date is the first instant of that day in the zone, whatever the clocks do at midnight.
func TestMoments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, text, want string }{
		{"Europe/Berlin", "2026-05-01", "2026-05-01T00:00:00+02:00"},
		{"Europe/Berlin", "2026-05-01T06:00:00Z", "2026-05-01T06:00:00Z"},
		{"America/Santiago", "2026-09-06", "2026-09-06T01:00:00-03:00"},  // no midnight
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00"},    // two
		{"Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"},      // no such day
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04T01:00:00-02:00"}, // no midnight
		{"America/Sao_Paulo", "2019-02-17", "2019-02-17T00:00:00-03:00"}, // 23:00 to 24:00 of the day before twice
	} {
		zone, err := jobs.LoadZone(c.zone)
		require.NoError(t, err)
		at, err := jobs.ParseMoment(c.text, zone)
		require.NoError(t, err)
		assert.Equal(t, c.want, at.Format(time.RFC3339), c.text)
	}
	for _, text := range []string{"", "2026-5-1", "2026-02-30", "tomorrow", "2026-05-01T06:00:00", "2026-05-01 06:00", "0000-01-01"} {
		_, err := jobs.ParseMoment(text, time.UTC)
		var fault *jobs.ScheduleError
		require.ErrorAs(t, err, &fault, text)
		assert.Equal(t, jobs.CodeWindow, fault.Code)
	}
}
