package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The line of UX.
func TestNextJSON(t *testing.T) {
	t.Parallel()
	newWorld(t).run(t, "next", "--schedule", "30 2 * * *", "--timezone", "America/New_York", "--from", "2026-03-07T12:00:00-05:00", "-n", "3", "-o", "json").
		says(t, exitOK, `[
  {
    "at": "2026-03-08T03:00:00-04:00"
  },
  {
    "at": "2026-03-09T02:30:00-04:00"
  },
  {
    "at": "2026-03-10T02:30:00-04:00"
  }
]
`, "")
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		args        []string
		code        int
		out, errors string
	}{
		{
			"a gap, for people",
			[]string{"--schedule", "30 2 * * *", "--timezone", "America/New_York", "--from", "2026-03-07T12:00:00-05:00", "-n", "2"},
			exitOK,
			"DAY  LOCAL                       UTC                   FROM NOW  NOTE\n" +
				"Sun  2026-03-08 03:00:00 -04:00  2026-03-08 07:00:00Z  in 2h     clocks go forward: 02:00-03:00 is missing\n" +
				"Mon  2026-03-09 02:30:00 -04:00  2026-03-09 06:30:00Z  in 1d1h\n", "",
		},
		{
			"a gap, skipped",
			[]string{"--schedule", "30 2 * * *", "--timezone", "America/New_York", "--dst", "skip", "--from", "2026-03-07T12:00:00-05:00", "-n", "1"},
			exitOK,
			"DAY  LOCAL                       UTC                   FROM NOW  NOTE\n" +
				"Mon  2026-03-09 02:30:00 -04:00  2026-03-09 06:30:00Z  in 1d1h   clocks changed: -05:00 became -04:00\n", "",
		},
		{
			"a doubled hour",
			[]string{"--schedule", "0 * * * *", "--timezone", "America/New_York", "--from", "2026-11-01T00:30:00-04:00", "-n", "3"},
			exitOK,
			"DAY  LOCAL                       UTC                   FROM NOW   NOTE\n" +
				"Sun  2026-11-01 01:00:00 -04:00  2026-11-01 05:00:00Z  in 238d    clocks go back: the first 01:00\n" +
				"Sun  2026-11-01 01:00:00 -05:00  2026-11-01 06:00:00Z  in 238d1h  clocks went back: the second 01:00\n" +
				"Sun  2026-11-01 02:00:00 -05:00  2026-11-01 07:00:00Z  in 238d2h\n", "",
		},
		{
			"UTC has an offset, too",
			[]string{"--schedule", "0 0 13 * 5", "--from", "2026-05-01T00:00:00Z", "-n", "1", "-o", "ndjson"},
			exitOK,
			`{"at":"2026-05-08T00:00:00+00:00"}` + "\n", "",
		},
		{
			"names",
			[]string{"--schedule", "*/20 * * * * *", "--seconds", "-n", "2", "-o", "name"},
			exitOK,
			"2026-03-08T05:00:20+00:00\n2026-03-08T05:00:40+00:00\n", "",
		},
		{
			"yaml",
			[]string{"--schedule", "@daily", "-n", "1", "-o", "yaml"},
			exitOK,
			"- at: \"2026-03-09T00:00:00+00:00\"\n", "",
		},
		{
			"a bad field",
			[]string{"--schedule", "0 61 * * *"},
			exitUsage, "",
			"cronlatch: hour 61 is outside 0-23 in \"0 61 * * *\"  [schedule]\ncronlatch:   0 61 * * *\ncronlatch:     ^~\n",
		},
		{
			"a bad zone",
			[]string{"--schedule", "@daily", "--timezone", "Europe/Berlim"},
			exitUsage, "",
			"cronlatch: ",
		},
		{
			"a bad policy",
			[]string{"--schedule", "@daily", "--dst", "twice"},
			exitUsage, "",
			"cronlatch: invalid argument \"twice\" for \"--dst\" flag: it must be one of once, skip, both\ncronlatch: \"cronlatch next --help\" lists the flags\n",
		},
		{"an empty schedule", []string{"--schedule", ""}, exitUsage, "", "cronlatch: "},
		{
			"a job of the file",
			[]string{"backup:db", "-n", "1", "-o", "name"},
			exitOK,
			"2026-03-08T03:00:00-04:00\n", "",
		},
		{
			"a job without a schedule",
			[]string{"by-hand"},
			exitFailure, "",
			"cronlatch: the job \"by-hand\" has no schedule\ncronlatch: `cronlatch run by-hand` runs it by hand\n",
		},
		{
			"a job that is not there",
			[]string{"backup-db"},
			exitFailure, "",
			"cronlatch: unknown job \"backup-db\" in DIR/cronlatch.yaml, did you mean \"backup:db\"?\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.write(t, twoJobs)
			got := w.run(t, append([]string{"next"}, c.args...)...)
			if c.errors == "cronlatch: " { // the sentence belongs to package jobs
				assert.Equal(t, c.code, got.code)
				assert.Empty(t, got.out)
				assert.Greater(t, len(got.errors), len(c.errors))
				return
			}
			got.says(t, c.code, c.out, c.errors)
		})
	}
}

// What a job says beside its schedule is in the answers of next and validate.
func TestNextAndValidateShowEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file(t, "holidays.ics", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20260309\nEND:VEVENT\nEND:VCALENDAR\n")
	w.write(t, `
calendars:
  off: {weekdays: [sat, sun], file: holidays.ics}
jobs:
  report: {run: x, schedule: ["0 6 * * SUN", "0 7 L * *"], jitter: 2m, until: 2026-04-01, calendars: {exclude: [off], shift: next}}
  spread: {run: x, schedule: "H H(2-4) * * *"}
`)
	w.run(t, "next", "report", "-n", "6").says(t, exitOK,
		"DAY  LOCAL                       UTC                   FROM NOW  NOTE\n"+
			"Tue  2026-03-10 06:00:00 +00:00  2026-03-10 06:00:00Z  in 2d1h   moved here by a calendar; due 06:00:18 (jitter)\n"+
			"Mon  2026-03-16 06:00:00 +00:00  2026-03-16 06:00:00Z  in 8d1h   moved here by a calendar; due 06:00:34 (jitter)\n"+
			"Mon  2026-03-23 06:00:00 +00:00  2026-03-23 06:00:00Z  in 15d1h  moved here by a calendar; due 06:01:48 (jitter)\n"+
			"Mon  2026-03-30 06:00:00 +00:00  2026-03-30 06:00:00Z  in 22d1h  moved here by a calendar; due 06:01:23 (jitter)\n"+
			"Tue  2026-03-31 07:00:00 +00:00  2026-03-31 07:00:00Z  in 23d2h  due 07:00:19 (jitter)\n",
		"cronlatch: the schedule never fires after 2026-03-31T07:00:00Z\n")
	w.run(t, "next", "report", "-n", "1", "-o", "json").says(t, exitOK, `[
  {
    "at": "2026-03-10T06:00:00+00:00",
    "due_at": "2026-03-10T06:00:18.684+00:00"
  }
]
`, "")
	valid := w.run(t, "validate")
	assert.Equal(t, exitOK, valid.code)
	assert.Contains(t, valid.out, "0 6 * * SUN; 0 7 L * *, until 2026-04-01T00:00:00Z, not on off, moved to the next date, jitter 2m  UTC   Tue 2026-03-10 06:00:00 +00:00 (in 2d1h)\n")
	assert.Contains(t, valid.out, "H H(2-4) * * *")
	w.run(t, "next", "--schedule", "H H(2-4) * * *", "--spread-by", "spread", "-n", "1", "-o", "name").
		says(t, exitOK, w.run(t, "next", "spread", "-n", "1", "-o", "name").out, "")
}

func TestNextOfAList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(t, "next", "--schedule", "0 9 13 * FRI", "--schedule", "0 9 LW * *", "--day-match", "all", "--from", "2026-10-01T00:00:00Z", "-n", "3", "-o", "name").
		says(t, exitOK, "2026-10-30T09:00:00+00:00\n2026-11-13T09:00:00+00:00\n2026-11-30T09:00:00+00:00\n", "")
	w.run(t, "next", "--schedule", "@daily", "--schedule", "0 61 * * *").says(t, exitUsage, "",
		"cronlatch: hour 61 is outside 0-23 in \"0 61 * * *\"  [schedule]\ncronlatch:   0 61 * * *\ncronlatch:     ^~\n")
	w.run(t, "next", "--schedule", "H 3 * * *").says(t, exitUsage, "",
		"cronlatch: H spreads jobs by their names, and there is no job here in \"H 3 * * *\"; name the job, or write a number  [schedule]\n"+
			"cronlatch:   H 3 * * *\ncronlatch:   ^\n")
}

func TestClockNotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, before, at, want string }{
		{"Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00", "clocks go forward: 02:00-02:30 is missing"},
		{"Australia/Lord_Howe", "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+11:00", "clocks go back: the first 01:45"},
		{"Australia/Lord_Howe", "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+10:30", "clocks went back: the second 01:45"},
		{"Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "clocks go forward: 2011-12-30 00:00 to 2011-12-31 00:00 is missing"},
		{"America/Havana", "2026-10-31T12:00:00-04:00", "2026-11-01T00:30:00-04:00", "clocks go back: the first 00:30"},
		{"Europe/Berlin", "2026-10-25T00:00:00+02:00", "2026-10-25T01:59:00+02:00", ""},
		{"Europe/Berlin", "2026-10-25T01:59:00+02:00", "2026-10-25T02:00:00+02:00", "clocks go back: the first 02:00"},
		{"Europe/Berlin", "2026-10-25T02:00:00+02:00", "2026-10-25T03:00:00+01:00", "clocks changed: +02:00 became +01:00"},
		{"UTC", "2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z", ""},
	} {
		zone, err := time.LoadLocation(c.zone)
		require.NoError(t, err)
		before, err := time.Parse(time.RFC3339, c.before)
		require.NoError(t, err)
		at, err := time.Parse(time.RFC3339, c.at)
		require.NoError(t, err)
		assert.Equal(t, c.want, clockNote(before.In(zone), at.In(zone)), c.at)
	}
}
