package jobs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func template(tb testing.TB, text string, o jobs.TemplateOptions) jobs.Template {
	tb.Helper()
	t, err := jobs.ParseTemplate(text, o)
	require.NoError(tb, err)
	return t
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	const at = "2026-05-03T06:07:08Z"
	cases := []struct{ text, offset, zone, at, want, period string }{
		{text: "backup:db", want: "backup:db"},
		{text: "report:monthly-YYYY-MM", want: "report:monthly-2026-05", period: "2026-05"},
		{text: "YYYY", want: "2026", period: "2026"},
		{text: "db/YYYY/MM/DD/HH/mm", want: "db/2026/05/03/06/07", period: "2026/05/03/06/07"},
		{text: "a_YYYY.MM.DD_b", want: "a_2026.05.03_b", period: "2026.05.03"},
		{text: "v2YYYY-MM", want: "v22026-05", period: "2026-05"},
		{text: "MM-DD-YYYY", want: "05-03-2026", period: "05-03-2026"},
		{text: "YYYY-YYYY", want: "2026-2026", period: "2026-2026"},
		{text: "YYYY of report MM", want: "2026 of report 05", period: "2026 of report 05"},
		{text: "größe-YYYY-ü", want: "größe-2026-ü", period: "2026"},
		{text: "🧾YYYY🧾MM", want: "🧾2026🧾05", period: "2026🧾05"},
		// No token: a letter beside it, or no year.
		{text: "backup:db-COMMAND", want: "backup:db-COMMAND"},
		{text: "SUMMARY", want: "SUMMARY"},
		{text: "MM", want: "MM"},
		{text: "report-MM-DD", want: "report-MM-DD"},
		{text: "HH:mm", want: "HH:mm"},
		{text: "fooYYYY", want: "fooYYYY"},
		{text: "YYYYs", want: "YYYYs"},
		{text: "YYYYY", want: "YYYYY"},
		{text: "ßYYYY", want: "ßYYYY"},
		{text: "yyyy-MM", want: "yyyy-MM"},
		{text: "YYYY-COMMAND-MMM-SUMMARY", want: "2026-COMMAND-MMM-SUMMARY", period: "2026"},
		{text: "YYYY-MMMM", want: "2026-MMMM", period: "2026"},
		{text: "YYYY-DDMM", want: "2026-DDMM", period: "2026"},
		// Written together, from large to small.
		{text: "x:YYYYMMDD", want: "x:20260503", period: "20260503"},
		{text: "x:YYYYMMDDHHmm", want: "x:202605030607", period: "202605030607"},
		{text: "x:YYYY-MM-DDTHH", want: "x:2026-05-03T06", period: "2026-05-03T06"},
		{text: "x:YYYY-MM-DDTHH:mm", want: "x:2026-05-03T06:07", period: "2026-05-03T06:07"},
		{text: "x:YYYY-MM-DDT", want: "x:2026-05-DDT", period: "2026-05"},
		{text: "x:YYYY-MMT", want: "x:2026-MMT", period: "2026"},
		// Offsets.
		{text: "r-YYYY-MM", offset: "-1mo", want: "r-2026-04", period: "2026-04"},
		{text: "r-YYYY-MM", offset: "-1mo", at: "2026-03-31T06:00:00Z", want: "r-2026-02", period: "2026-02"},
		{text: "r-YYYY-MM", offset: "-1mo", at: "2026-01-31T06:00:00Z", want: "r-2025-12", period: "2025-12"},
		{text: "r-YYYY-MM", offset: "+13mo", at: "2026-12-31T06:00:00Z", want: "r-2028-01", period: "2028-01"},
		{text: "r-YYYY-MM-DD", offset: "-1mo", want: "r-2026-04-01", period: "2026-04-01"},
		{text: "r-YYYY-MM-DD", offset: "-2d", at: "2026-03-01T06:00:00Z", want: "r-2026-02-27", period: "2026-02-27"},
		{text: "r-YYYY-MM-DD", offset: "+1w", at: "2026-12-28T06:00:00Z", want: "r-2027-01-04", period: "2027-01-04"},
		{text: "r-YYYY-MM-DD", offset: "1w", want: "r-2026-05-10", period: "2026-05-10"},
		{text: "r-YYYY-MM-DD", offset: "-1y", want: "r-2025-05-03", period: "2025-05-03"},
		{text: "r-YYYY-MM-DD", offset: "-1y", at: "2024-02-29T06:00:00Z", want: "r-2023-02-28", period: "2023-02-28"},
		{text: "r-YYYY", offset: "+0d", want: "r-2026", period: "2026"},
		// The job's zone decides the date; a day is a day of the calendar, also when it has 23 hours.
		{text: "r-YYYY-MM-DD", zone: "Pacific/Auckland", at: "2026-05-31T13:00:00Z", want: "r-2026-06-01", period: "2026-06-01"},
		{text: "r-YYYY-MM", zone: "America/New_York", at: "2026-06-01T03:59:59Z", want: "r-2026-05", period: "2026-05"},
		{text: "r-YYYY-MM", zone: "America/Asuncion", at: "2017-10-01T04:00:00Z", want: "r-2017-10", period: "2017-10"},
		{
			text: "r-YYYY-MM-DD/HH", zone: "America/New_York", offset: "+1d", at: "2026-03-07T07:30:00Z",
			want: "r-2026-03-08/02", period: "2026-03-08/02",
		},
	}
	for _, c := range cases {
		t.Run(c.text+" "+c.offset, func(t *testing.T) {
			t.Parallel()
			if c.at == "" {
				c.at = at
			}
			o := jobs.TemplateOptions{Offset: c.offset}
			if c.zone != "" {
				loc, err := jobs.LoadZone(c.zone)
				require.NoError(t, err)
				o.Location = loc
			}
			tpl := template(t, c.text, o)
			assert.Equal(t, c.want, tpl.At(instant(t, c.at)))
			period, ok := tpl.Period(instant(t, c.at))
			assert.Equal(t, c.period, period)
			assert.Equal(t, c.period != "", ok)
			assert.Equal(t, c.text, tpl.String())
		})
	}
}

func TestTemplateErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		text, offset, code, message string
		at, length                  int
	}{
		{"", "", "resource", "a resource needs a name", 0, 0},
		{"a\xff-YYYY", "", "resource", "a resource's name is UTF-8", 0, 7},
		{"r-YYYY-mm", "", "resource", `mm is the minute, and there is no hour (HH) in "r-YYYY-mm"; the month is MM`, 7, 2},
		{
			"backup:db", "-1mo", "resource-offset",
			`an offset needs a date to shift, and "backup:db" has none; write one into the resource, like backup:db-YYYY-MM`, 0, 4,
		},
		{"r-YYYY", "-1m", "resource-offset", `offset "-1m" has the unit m; a month is mo`, 2, 1},
		{"r-YYYY", "-2h", "resource-offset", `offset "-2h" has an unknown unit; units are d, w, mo and y`, 2, 1},
		{"r-YYYY", "-1mo2d", "resource-offset", `offset "-1mo2d" has an unknown unit; units are d, w, mo and y`, 2, 4},
		{"r-YYYY", "mo", "resource-offset", `offset "mo" is not a number with a unit; write one like -1mo, -2d, +1w or -1y`, 0, 2},
		{"r-YYYY", "--1d", "resource-offset", `offset "--1d" is not a number with a unit; write one like -1mo, -2d, +1w or -1y`, 0, 4},
		{"r-YYYY", "-1", "resource-offset", `offset "-1" is not a number with a unit; write one like -1mo, -2d, +1w or -1y`, 0, 2},
		{"r-YYYY", "-1001d", "resource-offset", `offset "-1001d" is larger than 1000`, 0, 6},
		{"r-YYYY", "9999999999999999999d", "resource-offset", `offset "9999999999999999999d" is larger than 1000`, 0, 20},
	}
	for _, c := range cases {
		t.Run(c.text+" "+c.offset, func(t *testing.T) {
			t.Parallel()
			_, err := jobs.ParseTemplate(c.text, jobs.TemplateOptions{Offset: c.offset})
			var fault *jobs.TemplateError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, jobs.TemplateError{Code: c.code, Message: c.message, Offset: c.at, Length: c.length}, *fault)
			assert.Equal(t, c.message, err.Error())
		})
	}
}

func TestTemplateZeroValue(t *testing.T) {
	t.Parallel()
	var zero jobs.Template
	assert.Empty(t, zero.At(time.Time{}))
	_, ok := zero.Period(time.Time{})
	assert.False(t, ok)
}

// Whatever the template, filling it changes nothing but the tokens, and the period is a part of the name.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"report:monthly-YYYY-MM", "YYYYMMDDTHHmm", "COMMAND", "mm", "é-YYYY", "\xffYYYY", "YYYY-mm"} {
		f.Add(text, "-1mo", int64(1_780_000_000))
	}
	f.Add("r-YYYY-MM-DD", "+1000y", int64(253402300799))
	f.Add("r-YYYY", "-d", int64(-1))
	f.Fuzz(func(t *testing.T, text, offset string, at int64) {
		tpl, err := jobs.ParseTemplate(text, jobs.TemplateOptions{Offset: offset})
		if err != nil {
			var fault *jobs.TemplateError
			require.ErrorAs(t, err, &fault)
			broken := map[string]string{jobs.CodeResource: text, jobs.CodeResourceOffset: offset}[fault.Code]
			require.LessOrEqual(t, fault.Offset+fault.Length, len(broken))
			require.GreaterOrEqual(t, min(fault.Offset, fault.Length), 0)
			return
		}
		when := time.Unix(at%100_000_000_000, 0)
		name := tpl.At(when)
		period, ok := tpl.Period(when)
		require.Contains(t, name, period)
		if !ok {
			require.Equal(t, text, name)
		}
	})
}
