package jobs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

const holidayFile = `BEGIN:VCALENDAR
PRODID:-//Example//Holidays//EN
VERSION:2.0
X-WR-CALNAME:Feiertage
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:19701025T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:1
DTSTAMP:20260101T000000Z
SUMMARY:A very long
  name\, folded: once
DTSTART;VALUE=DATE:20261003
END:VEVENT
begin:vevent
dtstart;x-note="a;b:c";value=date:20261224
DTEND;VALUE=DATE:20261227
rrule:freq=yearly
BEGIN:VALARM
TRIGGER:-PT15M
DURATION:PT5M
END:VALARM
END:VEVENT
END:VCALENDAR
`

func TestICalendar(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"line feeds": holidayFile, "carriage returns": strings.ReplaceAll(holidayFile, "\n", "\r\n"), "byte order mark": "\ufeff" + holidayFile,
		"folded date": strings.Replace(holidayFile, "VALUE=DATE:20261003", "VALUE=DA\n TE:2026\n\t1003", 1),
	} {
		c := calendarOf(t, jobs.CalendarOptions{File: []byte(text)})
		for date, want := range map[string]bool{
			"2026-10-03": true, "2027-10-03": false, "2026-10-04": false,
			"2026-12-23": false, "2026-12-24": true, "2026-12-26": true, "2026-12-27": false,
			"2030-12-25": true, "2025-12-25": false, /* before its first time */
		} {
			assert.Equal(t, want, c.Contains(instant(t, date+"T00:00:00Z")), "%s %s", name, date)
		}
	}
}

// A yearly event may go past the end of the year, or begin on a leap day.
func TestICalendarYearly(t *testing.T) {
	t.Parallel()
	c := calendarOf(t, jobs.CalendarOptions{File: []byte("BEGIN:VCALENDAR\n" +
		"BEGIN:VEVENT\nDTSTART;VALUE=DATE:20241230\nDTEND;VALUE=DATE:20250103\nRRULE:FREQ=YEARLY\nEND:VEVENT\n" +
		"BEGIN:VEVENT\nDTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY\nEND:VEVENT\nEND:VCALENDAR\n")})
	for date, want := range map[string]bool{
		"2024-01-01": false, "2025-01-02": true, "2025-01-03": false, "2027-12-29": false, "2027-12-30": true, "2028-01-02": true,
		"2025-02-28": false, "2025-03-01": false, "2028-02-29": true,
	} {
		assert.Equal(t, want, c.Contains(instant(t, date+"T00:00:00Z")), date)
	}
}

// Whatever changes the dates of an event and is not read is refused, with its line.
func TestICalendarFaults(t *testing.T) {
	t.Parallel()
	event := func(lines ...string) string {
		return "BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + strings.Join(lines, "\n") + "\nEND:VEVENT\nEND:VCALENDAR\n"
	}
	const start = "DTSTART;VALUE=DATE:20261225"
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"", 1, "this is not an iCalendar file, which begins with BEGIN:VCALENDAR"},
		{"s3cr3t\nBEGIN:VCALENDAR\n", 1, "this is not an iCalendar file, which begins with BEGIN:VCALENDAR"},
		{"BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + start + "\n", 3, "the file ends inside VCALENDAR; END:VEVENT is missing"},
		{"BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", 3, "END:VCALENDAR ends what began as VEVENT"},
		{"BEGIN:VCALENDAR\nEND:VCALENDAR\nVERSION:2.0\n", 3, "VERSION stands behind END:VCALENDAR"},
		{"BEGIN:VCALENDAR\nBEGIN:VTODO\n", 2, "VTODO is not read; a calendar has whole days, as VEVENT"},
		{"BEGIN:VCALENDAR\nBEGIN:VEVENT\nBEGIN:VEVENT\n", 3, "an event inside of another component"},
		{"BEGIN:VCALENDAR\nBEGIN:VCALENDAR\n", 2, "VCALENDAR inside of another component"},
		{event("SUMMARY"), 3, `"SUMMARY" has no colon; a line is NAME:VALUE`},
		{event("SUMMARY:x"), 2, "the event has no DTSTART;VALUE=DATE"},
		{event("UID:x", "DTSTART:20261225T100000Z"), 4, "DTSTART:20261225T100000Z is not a whole day; write DTSTART;VALUE=DATE:20261225"},
		{event("DTSTART;TZID=Europe/Berlin:20261225T100000"), 3, "DTSTART:20261225T100000 is not a whole day; write DTSTART;VALUE=DATE:20261225"},
		{event("DTSTART;VALUE=DATE:20260230"), 3, `"20260230" is not a date; write it like 20261225`},
		{event(start, start), 4, "a second DTSTART in the event of line 2"},
		{event(start, "DTEND;VALUE=DATE:20261225"), 2, "the event ends (2026-12-25) before it begins; DTEND is the day after its last"},
		{event(start, "DTEND;VALUE=DATE:20281225"), 2, "the event has 731 days, more than a year"},
		{event(start, "RRULE:FREQ=YEARLY;COUNT=3"), 4, "RRULE:FREQ=YEARLY;COUNT=3 is not read; the only rule is one FREQ=YEARLY, so write an event for each date"},
		{event(start, "RRULE:FREQ=WEEKLY"), 4, "RRULE:FREQ=WEEKLY is not read; the only rule is one FREQ=YEARLY, so write an event for each date"},
		{event(start, "EXDATE;VALUE=DATE:20271225"), 4, "EXDATE is not read; write an event with DTSTART and DTEND for each of its dates"},
		{event(start, "DURATION:P2D"), 4, "DURATION is not read; write an event with DTSTART and DTEND for each of its dates"},
		{event(start, "STATUS:CANCELLED"), 4, "the event of line 2 is cancelled; remove it from the file"},
	} {
		_, err := jobs.ParseCalendar("test", jobs.CalendarOptions{File: []byte(c.text)})
		var fault *jobs.CalendarError
		require.ErrorAs(t, err, &fault, c.text)
		assert.Equal(t, jobs.CalendarFile, fault.List)
		assert.Equal(t, c.line, fault.Item, fault.Message)
		_, message, _ := strings.Cut(fault.Message, ": ")
		assert.Equal(t, c.want, message)
		assert.NotContains(t, fault.Message, "s3cr3t")
	}
}

// Whatever the bytes, reading ends without a panic, with a calendar or with a fault that has a line.
func FuzzICalendar(f *testing.F) {
	f.Add([]byte(holidayFile))
	f.Add([]byte("BEGIN:VCALENDAR\n END:\n;:\n\"\n"))
	f.Add([]byte("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:00010101\nRRULE:FREQ=YEARLY\nEND:VEVENT\nEND:VCALENDAR\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := jobs.ParseCalendar("fuzz", jobs.CalendarOptions{File: append([]byte{}, data...)})
		if err == nil {
			_ = c.Contains(instant(t, "2026-05-01T00:00:00Z"))
			return
		}
		var fault *jobs.CalendarError
		require.ErrorAs(t, err, &fault)
		require.NotEmpty(t, fault.Message)
	})
}
