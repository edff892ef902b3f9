package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func calendarOf(tb testing.TB, o jobs.CalendarOptions) *jobs.Calendar {
	tb.Helper()
	c, err := jobs.ParseCalendar("test", o)
	require.NoError(tb, err)
	return c
}

func excluding(tb testing.TB, shift jobs.Shift, o jobs.CalendarOptions) jobs.Calendars {
	tb.Helper()
	return jobs.Calendars{Exclude: []*jobs.Calendar{calendarOf(tb, o)}, Shift: shift}
}

func TestCalendarContains(t *testing.T) {
	t.Parallel()
	c := calendarOf(t, jobs.CalendarOptions{Dates: []string{"2026-12-31", "12-25", "02-29"}, Weekdays: []string{"SUN", "saturday"}})
	assert.Equal(t, "test", c.Name())
	for date, want := range map[string]bool{
		"2026-12-31": true, "2027-12-31": false, "2026-12-25": true, "2031-12-25": true, "2028-02-29": true,
		"2027-02-28": true /* a Sunday */, "2027-03-01": false, "2026-05-02": true, "2026-05-03": true, "2026-05-04": false,
	} {
		assert.Equal(t, want, c.Contains(instant(t, date+"T12:00:00Z")), date)
	}
	berlin := parse(t, "@daily", jobs.ScheduleOptions{Timezone: "Europe/Berlin"}).Location()
	assert.True(t, c.Contains(instant(t, "2026-12-24T23:30:00Z").In(berlin)), "the date of the zone")
}

func TestCalendarFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    jobs.CalendarOptions
		want jobs.CalendarError
	}{
		{jobs.CalendarOptions{}, jobs.CalendarError{Message: `the calendar "test" has no dates`}},
		{
			jobs.CalendarOptions{Dates: []string{"2026-12-25", "2026-02-29"}},
			jobs.CalendarError{List: "dates", Item: 1, Message: `"2026-02-29" is not a date; write it like 2026-12-25, or 12-25 for every year`},
		},
		{
			jobs.CalendarOptions{Dates: []string{"1-1"}},
			jobs.CalendarError{List: "dates", Item: 0, Message: `"1-1" is not a date; write it like 2026-12-25, or 12-25 for every year`},
		},
		{
			jobs.CalendarOptions{Weekdays: []string{"sat", "6"}},
			jobs.CalendarError{List: "weekdays", Item: 1, Message: `"6" is not a day of the week; write sat or saturday`},
		},
	} {
		_, err := jobs.ParseCalendar("test", c.o)
		var fault *jobs.CalendarError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, c.want, *fault)
	}
}

// What each shift makes of a daily run at 06:00 around a weekend and a holiday on Monday.
func TestShift(t *testing.T) {
	t.Parallel()
	off := jobs.CalendarOptions{Dates: []string{"2026-05-25"}, Weekdays: []string{"sat", "sun"}} // 23 May 2026 is a Saturday
	for _, c := range []struct {
		text  string
		shift jobs.Shift
		want  []string
	}{
		{"0 6 * * *", jobs.ShiftNone, []string{"2026-05-22T06:00:00Z", "2026-05-26T06:00:00Z"}},
		{"0 6 * * *", jobs.ShiftNext, []string{"2026-05-22T06:00:00Z", "2026-05-26T06:00:00Z"}}, // four fall together
		{"0 6 * * SUN", jobs.ShiftNone, nil},
		{"0 6 * * SUN", jobs.ShiftNext, []string{"2026-05-26T06:00:00Z", "2026-06-01T06:00:00Z"}},
		{"0 6 * * SUN", jobs.ShiftPrevious, []string{"2026-05-22T06:00:00Z", "2026-05-29T06:00:00Z"}},
		{"*/30 6 24 * *", jobs.ShiftPrevious, []string{"2026-05-22T06:00:00Z", "2026-05-22T06:30:00Z", "2026-06-24T06:00:00Z"}},
		{"0 6 24,26 * *", jobs.ShiftNext, []string{"2026-05-26T06:00:00Z", "2026-06-24T06:00:00Z"}},
		{"0 6 LW * *", jobs.ShiftNext, []string{"2026-05-29T06:00:00Z"}},
	} {
		o := jobs.ScheduleOptions{Calendars: excluding(t, c.shift, off)}
		if c.want == nil {
			fault := faultOf(t, o, c.text)
			assert.Equal(t, jobs.CodeScheduleNever, fault.Code)
			assert.Equal(t, `"0 6 * * SUN" never fires: its calendars leave no instant of it`, fault.Message)
			continue
		}
		assertNext(t, parse(t, c.text, o), "2026-05-21T12:00:00Z", c.want...)
	}
}

// What was shifted is a local time of its new date: the date's change of the clocks applies to it.
func TestShiftOntoAChangeOfTheClocks(t *testing.T) {
	t.Parallel()
	o := jobs.ScheduleOptions{Timezone: "America/New_York", Calendars: excluding(t, jobs.ShiftNext, jobs.CalendarOptions{Weekdays: []string{"sat"}})}
	assertNext(t, parse(t, "30 2 * * SAT", o), "2026-03-06T12:00:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-15T02:30:00-04:00")
	assertNext(t, parse(t, "30 1 * * SAT", o), "2026-10-30T12:00:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-08T01:30:00-05:00")
	o.DST = jobs.DSTBoth
	assertNext(t, parse(t, "30 1 * * SAT", o), "2026-10-30T12:00:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00")
}

func TestIncludeAndExclude(t *testing.T) {
	t.Parallel()
	fair := calendarOf(t, jobs.CalendarOptions{Dates: []string{"2026-09-12", "2026-09-14", "2026-09-15"}}) // the 12th is a Saturday
	weekend := calendarOf(t, jobs.CalendarOptions{Weekdays: []string{"sat", "sun"}})
	o := jobs.ScheduleOptions{Calendars: jobs.Calendars{Include: []*jobs.Calendar{fair}, Exclude: []*jobs.Calendar{weekend}}}
	s := parse(t, "0 9 * * *", o)
	assertNext(t, s, "2026-01-01T00:00:00Z", "2026-09-14T09:00:00Z", "2026-09-15T09:00:00Z")
	assert.Zero(t, s.Next(instant(t, "2026-09-15T09:00:00Z")), "a list of dates ends")

	o.Calendars.Shift = jobs.ShiftNext
	s = parse(t, "0 9 1 * *", o)
	assertNext(t, s, "2026-01-01T00:00:00Z", "2026-09-14T09:00:00Z")
	assert.Zero(t, s.Next(instant(t, "2026-09-14T09:00:00Z")), "the 15th gets nothing: the 14th is not excluded")
}

// @every has no dates; calendars drop what they exclude, on the local clock.
func TestEveryWithCalendars(t *testing.T) {
	t.Parallel()
	o := jobs.ScheduleOptions{Timezone: "Europe/Berlin", Calendars: excluding(t, jobs.ShiftNone, jobs.CalendarOptions{Weekdays: []string{"sat", "sun"}})}
	assertNext(t, parse(t, "@every 30m", o), "2026-05-01T23:15:00+02:00", "2026-05-01T23:30:00+02:00", "2026-05-04T00:00:00+02:00", "2026-05-04T00:30:00+02:00")
	o.Calendars.Shift = jobs.ShiftNext
	fault := faultOf(t, o, "@daily", "@every 30m")
	assert.Equal(t, jobs.CodeCalendar, fault.Code)
	assert.Equal(t, 1, fault.Item)
}

func TestBlackouts(t *testing.T) {
	t.Parallel()
	window := func(from, until string) jobs.Blackout {
		b, err := jobs.ParseBlackout(from, until, time.UTC)
		require.NoError(t, err)
		return b
	}
	o := jobs.ScheduleOptions{Calendars: jobs.Calendars{Blackout: []jobs.Blackout{
		window("22:00", "06:00"), window("12:00", "12:30:01"), window("2026-05-02", "2026-05-03T09:00:00Z"),
	}}}
	s := parse(t, "*/30 * * * *", o)
	assertNext(t, s, "2026-05-01T11:00:00Z", "2026-05-01T11:30:00Z", "2026-05-01T13:00:00Z")
	assertNext(t, s, "2026-05-01T21:00:00Z", "2026-05-01T21:30:00Z", "2026-05-03T09:00:00Z")
	assertNext(t, s, "2026-05-03T21:15:00Z", "2026-05-03T21:30:00Z", "2026-05-04T06:00:00Z")
	assert.Equal(t, `"0 23 * * *" never fires: its calendars leave no instant of it`, faultOf(t, o, "0 23 * * *").Message)

	whole := jobs.ScheduleOptions{Calendars: jobs.Calendars{Blackout: []jobs.Blackout{window("08:00", "24:00")}}}
	assertNext(t, parse(t, "0 */6 * * *", whole), "2026-05-01T06:00:00Z", "2026-05-02T00:00:00Z", "2026-05-02T06:00:00Z")
}

// A daily window is local time: on the day of the change it follows the clock on the wall.
func TestBlackoutFollowsTheLocalClock(t *testing.T) {
	t.Parallel()
	b, err := jobs.ParseBlackout("01:00", "02:00", time.UTC)
	require.NoError(t, err)
	o := jobs.ScheduleOptions{Timezone: "America/New_York", Calendars: jobs.Calendars{Blackout: []jobs.Blackout{b}}}
	assertNext(t, parse(t, "*/30 * * * *", o), "2026-11-01T00:15:00-04:00", // 01:00 to 02:00 comes twice
		"2026-11-01T00:30:00-04:00", "2026-11-01T02:00:00-05:00", "2026-11-01T02:30:00-05:00")
	assertNext(t, parse(t, "*/30 * * * *", o), "2026-03-08T00:30:00-05:00", "2026-03-08T03:00:00-04:00")

	night, err := jobs.ParseBlackout("01:00", "06:00", time.UTC)
	require.NoError(t, err)
	o.Calendars.Blackout = []jobs.Blackout{night} // an hour shorter in the night of the gap
	assertNext(t, parse(t, "*/30 * * * *", o), "2026-03-08T00:30:00-05:00", "2026-03-08T06:00:00-04:00")
}

func TestBlackoutFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, until string
		item        int
	}{
		{"22:00", "2026-05-01", -1},
		{"06:00", "06:00:00", -1},
		{"00:00", "24:00", -1},
		{"2026-05-01", "2026-05-01", -1},
		{"24:01", "2026-05-01", 0},
		{"2026-05-01", "7:00", 1},
	} {
		_, err := jobs.ParseBlackout(c.from, c.until, time.UTC)
		var fault *jobs.ScheduleError
		require.ErrorAs(t, err, &fault, c.from)
		assert.Equal(t, jobs.CodeWindow, fault.Code)
		assert.Equal(t, c.item, fault.Item, "%s %s: %s", c.from, c.until, fault.Message)
	}
}

// The hash covers the dates, not what they are called or how they are written.
func TestHashOfCalendars(t *testing.T) {
	t.Parallel()
	hash := func(c jobs.Calendars) string {
		return parse(t, "0 6 * * *", jobs.ScheduleOptions{Calendars: c}).Hash()
	}
	base := excluding(t, jobs.ShiftNone, jobs.CalendarOptions{Dates: []string{"2026-12-25", "2026-12-26"}})
	seen := map[string]bool{hash(jobs.Calendars{}): true}
	for _, c := range []jobs.Calendars{
		base,
		{Include: base.Exclude},
		{Exclude: base.Exclude, Shift: jobs.ShiftNext},
		excluding(t, jobs.ShiftNone, jobs.CalendarOptions{Dates: []string{"2026-12-25"}}),
		excluding(t, jobs.ShiftNone, jobs.CalendarOptions{Dates: []string{"12-25", "12-26"}}),
		excluding(t, jobs.ShiftNone, jobs.CalendarOptions{Dates: []string{"2026-12-25", "2026-12-26"}, Weekdays: []string{"sat"}}),
	} {
		require.False(t, seen[hash(c)])
		seen[hash(c)] = true
	}
	file := "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261227\nSUMMARY:x\nEND:VEVENT\nEND:VCALENDAR\n"
	assert.Equal(t, hash(base), hash(excluding(t, jobs.ShiftNone, jobs.CalendarOptions{File: []byte(file)})))
	assert.Equal(t, hash(base), hash(excluding(t, jobs.ShiftNone, jobs.CalendarOptions{Dates: []string{"2026-12-26", "2026-12-25", "2026-12-26"}})))

	b, err := jobs.ParseBlackout("22:00", "06:00", time.UTC)
	require.NoError(t, err)
	assert.False(t, seen[hash(jobs.Calendars{Blackout: []jobs.Blackout{b}})])
	assert.Equal(t, hash(jobs.Calendars{Blackout: []jobs.Blackout{b}}), hash(jobs.Calendars{Blackout: []jobs.Blackout{b, b}}))
}

func TestWhatBoundsASchedule(t *testing.T) {
	t.Parallel()
	assert.Empty(t, parse(t, "@daily", jobs.ScheduleOptions{}).Limits())
	b, err := jobs.ParseBlackout("22:00", "06:00", time.UTC)
	require.NoError(t, err)
	once, err := jobs.ParseBlackout("2026-05-05", "2026-05-06", time.UTC)
	require.NoError(t, err)
	o := jobs.ScheduleOptions{
		Timezone: "Europe/Berlin", From: instant(t, "2026-05-01T00:00:00Z"), Until: instant(t, "2027-01-01T00:00:00Z"),
		Calendars: excluding(t, jobs.ShiftNext, jobs.CalendarOptions{Weekdays: []string{"sat", "sun"}}),
	}
	o.Calendars.Blackout = []jobs.Blackout{b, once}
	s := parse(t, "0 12 * * SUN", o)
	assert.Equal(t, "from 2026-05-01T02:00:00+02:00, until 2027-01-01T01:00:00+01:00, not on test, moved to the next date, "+
		"blackout daily 22:00-06:00, blackout 2026-05-05T00:00:00Z to 2026-05-06T00:00:00Z", s.Limits())

	at := s.Next(instant(t, "2026-05-10T00:00:00Z"))
	assert.Equal(t, "2026-05-11T12:00:00+02:00", at.Format(time.RFC3339))
	assert.True(t, s.Moved(at))
	assert.False(t, parse(t, "0 12 * * SUN,MON", o).Moved(at))
	assert.False(t, parse(t, "0 12 * * SUN", jobs.ScheduleOptions{}).Moved(at))
}
