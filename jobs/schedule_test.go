package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestScheduleErrors(t *testing.T) {
	t.Parallel()
	const (
		five = `write five: minute, hour, day of month, month, day of week, like "0 2 * * *"`
		six  = `write six: second, minute, hour, day of month, month, day of week, like "30 0 2 * * *"`
		list = `; write a value on both sides of each comma, without blanks`
	)
	cases := []struct {
		text       string
		at, length int
		code       string
		message    string
	}{
		{"61 * * * *", 0, 2, "schedule", `minute 61 is outside 0-59 in "61 * * * *"`},
		{"0 24 * * *", 2, 2, "schedule", `hour 24 is outside 0-23 in "0 24 * * *"`},
		{"0 0 0 * *", 4, 1, "schedule", `day of month 0 is outside 1-31 in "0 0 0 * *"`},
		{"0 0 * 13 *", 6, 2, "schedule", `month 13 is outside 1-12 in "0 0 * 13 *"`},
		{"0 0 * * 8", 8, 1, "schedule", `day of week 8 is outside 0-7 in "0 0 * * 8"`},
		{"1-70 * * * *", 2, 2, "schedule", `minute 70 is outside 0-59 in "1-70 * * * *"`},
		{"99999999999999999999 * * * *", 0, 20, "schedule", `minute 99999999999999999999 is outside 0-59 in "99999999999999999999 * * * *"`},
		{"*/90 * * * *", 2, 2, "schedule", `step 90 is larger than its range 0-59 in "*/90 * * * *"; a step here is at most 60`},
		{"*/61 * * * *", 2, 2, "schedule", `step 61 is larger than its range 0-59 in "*/61 * * * *"; a step here is at most 60`},
		{"50/30 * * * *", 3, 2, "schedule", `step 30 is larger than its range 50-59 in "50/30 * * * *"; a step here is at most 10`},
		{"0 22-2/9 * * *", 7, 1, "schedule", `step 9 is larger than its range 22-2 in "0 22-2/9 * * *"; a step here is at most 5`},
		{"5/0 * * * *", 2, 1, "schedule", `step 0 in "5/0 * * * *"; a step is at least 1`},
		{"*/x * * * *", 2, 1, "schedule", `step "x" is not a number in "*/x * * * *"; write a whole number behind the slash, like */15`},
		{", * * * *", 0, 1, "schedule", `empty list item in ", * * * *"` + list},
		{"1, 2 * * * *", 1, 1, "schedule", `empty list item in "1, 2 * * * *"` + list},
		{"1,,2 * * * *", 2, 1, "schedule", `empty list item in "1,,2 * * * *"` + list},
		{"-5 * * * *", 0, 1, "schedule", `half a range or step in the field minute in "-5 * * * *"; write both ends, like 1-5`},
		{"5- * * * *", 1, 1, "schedule", `half a range or step in the field minute in "5- * * * *"; write both ends, like 1-5`},
		{"*5 * * * *", 0, 2, "schedule", `minute "*5" is not a number in "*5 * * * *"; * stands alone or before a step, like */15`},
		{"? * * * *", 0, 1, "schedule", `? in the field minute in "? * * * *"; write *; ? is for the two day fields`},
		{"+5 * * * *", 0, 2, "schedule", `minute "+5" is not a number in "+5 * * * *"`},
		{"0\u00a02 * * * *", 0, 4, "schedule", `minute "0\u00a02" is not a number in "0\u00a02 * * * *"; write it in ASCII, with plain blanks`},
		{"0 0 * * MONDY", 8, 5, "schedule", `day of week "MONDY" is not a number in "0 0 * * MONDY"; write MON`},
		{"0 0 * FEX *", 6, 3, "schedule", `month "FEX" is not a number in "0 0 * FEX *"; names are JAN to DEC`},
		{"H 3 * * *", 0, 1, "schedule", `H spreads jobs by their names, and there is no job here in "H 3 * * *"; name the job, or write a number`},
		{"job H() 3 * * *", 0, 3, "schedule", `"H()" is not understood in "H() 3 * * *"; write H, or H with a range like H(0-29)`},
		{"job H(5 3 * * *", 0, 3, "schedule", `"H(5" is not understood in "H(5 3 * * *"; write H, or H with a range like H(0-29)`},
		{"job H(30-29) 3 * * *", 2, 5, "schedule", `the range 30-29 runs backwards in "H(30-29) 3 * * *"; write the smaller value first`},
		{"job H(0-60) 3 * * *", 4, 2, "schedule", `minute 60 is outside 0-59 in "H(0-60) 3 * * *"`},
		{"job H/61 * * * *", 2, 2, "schedule", `step 61 is larger than its range 0-59 in "H/61 * * * *"; a step here is at most 60`},
		{"job H-5 * * * *", 0, 1, "schedule", `minute "H" is not a number in "H-5 * * * *"`},
		{"0 0 * * L", 8, 1, "schedule", `L alone in the field day of week in "0 0 * * L"; write 5L for the last Friday of the month, or L in the field day of month`},
		{"0 0 L/2 * *", 4, 3, "schedule", `a step behind L in "0 0 L/2 * *"; L, W and # stand for single days; write them without a step`},
		{"0 0 1-L * *", 6, 1, "schedule", `L inside a range in "0 0 1-L * *"; L, W and # stand for single days; write L-3 for three days before the last`},
		{"0 0 LAST * *", 4, 4, "schedule", `"LAST" is not understood in "0 0 LAST * *"; write L, or L-3 for three days before the last, or LW`},
		{"0 0 W * *", 4, 1, "schedule", `W goes with one day of the month in "0 0 W * *"; write it like 15W or LW`},
		{"0 0 1-15W * *", 4, 5, "schedule", `W goes with one day of the month in "0 0 1-15W * *"; write it like 15W or LW`},
		{"0 0 32W * *", 4, 2, "schedule", `day of month 32 is outside 1-31 in "0 0 32W * *"`},
		{"0 0 * * 8L", 8, 1, "schedule", `day of week 8 is outside 0-7 in "0 0 * * 8L"`},
		{"0 0 * * MON#x", 8, 5, "schedule", `week "x" is not a number in "0 0 * * MON#x"; write MON#2 for the second Monday of the month, 1L for the last one`},
		{"0 0 L-31 * *", 4, 4, "schedule-never", `L-31 never comes: no month has a day 31 days before its last in "0 0 L-31 * *"`},
		{"0 0 * * MON#6", 8, 5, "schedule-never", `MON#6 never comes: a month has the weeks #1 to #5 in "0 0 * * MON#6"`},
		{"0 0 * * MON#0", 8, 5, "schedule-never", `MON#0 never comes: a month has the weeks #1 to #5 in "0 0 * * MON#0"`},
		{"0 0 L-29 2 *", 0, 12, "schedule-never", `"0 0 L-29 2 *" never fires: none of its months has such a day`},
		{"0 0 31W 4,6 *", 0, 13, "schedule-never", `"0 0 31W 4,6 *" never fires: none of its months has such a day`},
		{"", 0, 0, "schedule", `there is no schedule in ""; ` + five},
		{" \n", 0, 2, "schedule", `there is no schedule in " \n"; ` + five},
		{"  5 *", 2, 3, "schedule", `2 fields in "  5 *"; ` + five},
		{"*", 0, 1, "schedule", `1 field in "*"; ` + five},
		{
			"0 30 2 * * *", 0, 12, "schedule",
			`six fields where five are expected in "0 30 2 * * *"; for a schedule with seconds say seconds: true; otherwise ` + five,
		},
		{"seconds 30 2 * * *", 0, 10, "schedule", `five fields where seconds: true expects six in "30 2 * * *"; leave seconds out, or ` + six},
		{"* * * * * * *", 0, 13, "schedule", `seven fields in "* * * * * * *"; a year cannot be given; ` + five},
		{"TZ=", 0, 3, "schedule", `a zone does not belong in the schedule: TZ= in "TZ="; write the zone in the job's key timezone`},
		{
			"CRON_TZ=Europe/Rome 0 6 * * *", 0, 19, "schedule",
			`a zone does not belong in the schedule: CRON_TZ= in "CRON_TZ=Europe/Rome 0 6 * * *"; write timezone: Europe/Rome and schedule: "0 6 * * *"`,
		},
		{
			"@reboot", 0, 7, "schedule",
			`@reboot is the start of one replica, not an instant that all of them know, in "@reboot"; leave the schedule out and run the job by hand, or write @every`,
		},
		{"@dayly", 0, 6, "schedule", `unknown schedule "@dayly" in "@dayly"; did you mean @daily?`},
		{"@daily 5", 7, 1, "schedule", `"5" behind @daily in "@daily 5"; write @daily alone`},
		{"@every", 6, 0, "schedule", `no duration behind @every in "@every"; write one, like @every 15m`},
		{"@every -5s", 7, 3, "schedule", `negative duration -5s in "@every -5s"; write a positive one, like @every 15m`},
		{"@every 0s", 7, 2, "schedule", `duration 0s is shorter than a second in "@every 0s"`},
		{"@every 1.5s", 7, 4, "schedule", `duration 1.5s is not a whole number of seconds in "@every 1.5s"`},
		{"@every 15", 7, 2, "schedule", `"15" is not a duration in "@every 15"; write one like 90s, 15m, 1h30m, 2d or 1w`},
		{"@every 1h 30m", 10, 3, "schedule", `"30m" behind the duration in "@every 1h 30m"; write the duration without blanks, like 1h30m`},
		{"@every 99999d", 7, 6, "schedule", `duration 99999d is longer than 100 years in "@every 99999d"; write one like 90s, 15m, 1h30m, 2d or 1w`},
		{"0 0 30 2 *", 0, 10, "schedule-never", `"0 0 30 2 *" never fires: February has no day 30`},
		{"0 0 30,31 FEB *", 0, 15, "schedule-never", `"0 0 30,31 FEB *" never fires: February has no day 30 or 31`},
		{"0 0 31 2,4,6 ?", 0, 14, "schedule-never", `"0 0 31 2,4,6 ?" never fires: February, April and June have no day 31`},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			text, seconds := strings.CutPrefix(c.text, "seconds ")
			text, spread := strings.CutPrefix(text, "job ")
			o := jobs.ScheduleOptions{Seconds: seconds}
			if spread {
				o.Job = "nightly"
			}
			s, err := jobs.ParseSchedule(text, o)
			require.Nil(t, s)
			var fault *jobs.ScheduleError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, jobs.ScheduleError{Code: c.code, Message: c.message, Offset: c.at, Length: c.length}, *fault)
			assert.Equal(t, c.message, err.Error())
		})
	}
}

// What looks like the errors above and is none.
func TestSchedulesThatAreFine(t *testing.T) {
	t.Parallel()
	cases := map[string]string{ // what follows 2026-05-01T00:00:00Z, a Friday
		"*/60 * * * *":       "2026-05-01T01:00:00Z",
		"0 */24 * * *":       "2026-05-02T00:00:00Z",
		"0 0 */31 * *":       "2026-06-01T00:00:00Z",
		"0 0 30 2 1":         "2027-02-01T00:00:00Z", // either day field: the Mondays of February
		"0 0 29 2 ?":         "2028-02-29T00:00:00Z",
		"0 0 31 * *":         "2026-05-31T00:00:00Z",
		"05 08 * * *":        "2026-05-01T08:05:00Z",
		"0 0 ? * 7":          "2026-05-03T00:00:00Z",
		"0 0 * * 7-7":        "2026-05-03T00:00:00Z",
		"0 0 * * SUN-SUN":    "2026-05-03T00:00:00Z",
		"0 0 * * 0-7":        "2026-05-02T00:00:00Z",
		"0 0 * * 7/2":        "2026-05-02T00:00:00Z",
		"0 0 1 NOV-feb *":    "2026-11-01T00:00:00Z",
		"0 0 30-2/2 * *":     "2026-05-30T00:00:00Z",
		"0 0 13,* * 5":       "2026-05-08T00:00:00Z", // a bare star in a list is a star
		"0 0 */2 * 5":        "2026-05-03T00:00:00Z", // a step is a restriction
		"1,1,1 * * * *":      "2026-05-01T00:01:00Z",
		"\n 0 12 * * * \r\n": "2026-05-01T12:00:00Z",
		"@every 1w":          "2026-05-07T00:00:00Z",
	}
	for text, want := range cases {
		assertNext(t, parse(t, text, jobs.ScheduleOptions{}), "2026-05-01T00:00:00Z", want)
	}
}

func TestScheduleOptionErrors(t *testing.T) {
	t.Parallel()
	var fault *jobs.ScheduleError
	_, err := jobs.ParseSchedule("0 2 * * *", jobs.ScheduleOptions{DST: "twice"})
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, jobs.ScheduleError{Code: jobs.CodeDST, Message: `dst "twice" is not one of once, skip, both`, Length: 5}, *fault)

	_, err = jobs.ParseSchedule("0 2 * * *", jobs.ScheduleOptions{Timezone: "Europe/Berln"})
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, jobs.CodeTimezone, fault.Code)
}

// Different ways of writing the same instants have one hash; whatever changes an instant changes the hash.
func TestScheduleHash(t *testing.T) {
	t.Parallel()
	same := [][]string{
		{"@daily", "@midnight", "0 0 * * *", " 00\t0  ? * ?\n"},
		{"@hourly", "0 * * * *", "0 0-23 * * *", "0 */1 * * *"},
		{"@weekly", "0 0 * * 0", "0 0 * * 7", "0 0 * * SUN", "0 0 * * sun,7"},
		{"@monthly", "0 0 1 * *", "0 0 1 1-12 *"},
		{"@yearly", "@annually", "0 0 1 1 *", "0 0 1 jan *"},
		{"0 22-2 * * *", "0 22-23,0-2 * * *", "0 0-2,22,23-23 * * *"},
		{"*/15 * * * *", "0-59/15 * * * *", "0/15 * * * *", "0,15,30-45/15 * * * *"},
		{"0 0 * * FRI-MON", "0 0 * * 5-7,1", "0 0 * * 5,6,0,1"},
		{"@every 1d12h", "@every 36h", "@every 1.5d"},
	}
	seen := map[string]string{}
	for _, texts := range same {
		hash := parse(t, texts[0], jobs.ScheduleOptions{}).Hash()
		require.Len(t, hash, 32)
		require.Empty(t, seen[hash], texts[0])
		seen[hash] = texts[0]
		for _, text := range texts {
			assert.Equal(t, hash, parse(t, text, jobs.ScheduleOptions{}).Hash(), text)
		}
	}
	different := []jobs.ScheduleOptions{{Timezone: "Etc/UTC"}, {Timezone: "Europe/Berlin"}, {DST: jobs.DSTSkip}, {DST: jobs.DSTBoth}}
	for _, o := range different {
		hash := parse(t, "@daily", o).Hash()
		assert.Empty(t, seen[hash], "%+v", o)
		seen[hash] = "@daily"
	}
	for _, text := range []string{
		"0,1 1 * * *", "0-1 1 * * *", // fixed and interval
		"0 0 */1 * 5", "0 0 * * 5", // restricted or not
	} {
		hash := parse(t, text, jobs.ScheduleOptions{}).Hash()
		assert.Empty(t, seen[hash], text)
		seen[hash] = text
	}
	assert.Equal(t, "85daf3f7abcc0124c56b0ccf283bdcdb", parse(t, "0 2 * * *", jobs.ScheduleOptions{}).Hash(),
		"the hash of a schedule moved: every position in the ledger starts anew")
}

func TestScheduleSaysWhatItIs(t *testing.T) {
	t.Parallel()
	s := parse(t, " @daily ", jobs.ScheduleOptions{Timezone: "Europe/Berlin"})
	assert.Equal(t, " @daily ", s.String())
	assert.Equal(t, "Europe/Berlin", s.Location().String())
	assert.Equal(t, time.UTC, parse(t, "@daily", jobs.ScheduleOptions{}).Location())
}

// Whatever the text, parsing ends without a panic, faults lie within the text, and what is accepted moves on.
func FuzzParseSchedule(f *testing.F) {
	for _, text := range []string{
		"30 2 * * *", "*/90 * * * *", ", * * * *", "0 22-2/3 1,15 JAN-MAR fri-7", "TZ=TZ=TZ=", "CRON_TZ=", "@every 1w2d", "@every -5s",
		"@every .s", "@", "0 0 30 2 *", "0 0 29 2 1", "H L W #", "*/*/* - / ? ,", "0 0 ? * ?", "\xff\u00a0 1 2 3 4", "@every 1.h",
		"0 0 L-3W,15W,LW * *", "0 0 L * 5L,MON#5,sunday#1", "0 H(0-7)/3 H * H", "0 0 L-31 * MON#6", "H() H( H) H/0 #L",
	} {
		f.Add(text, false, int64(1_780_000_000))
		f.Add(text, true, int64(-4_000_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, seconds bool, at int64) {
		s, err := jobs.ParseSchedule(text, jobs.ScheduleOptions{Seconds: seconds, Timezone: "America/Santiago", Job: "fuzz"})
		if err != nil {
			var fault *jobs.ScheduleError
			require.ErrorAs(t, err, &fault)
			require.NotEmpty(t, fault.Message)
			require.GreaterOrEqual(t, min(fault.Offset, fault.Length), 0)
			require.LessOrEqual(t, fault.Offset+fault.Length, len(text))
			return
		}
		after := time.Unix(at%200_000_000_000, 0)
		for range 3 {
			next := s.Next(after)
			require.True(t, next.After(after), "%s after %s", next, after)
			after = next
		}
	})
}
