package importer

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// vixieField is a field as Vixie cron's entry.c reads it: a set of values, and whether it begins with a star.
type vixieField struct {
	values [64]bool
	star   bool
}

func readVixie(t *testing.T, text string, low, high int) vixieField {
	t.Helper()
	f := vixieField{star: text[0] == '*'}
	for item := range strings.SplitSeq(text, ",") {
		base, stepText, stepped := strings.Cut(item, "/")
		step := 1
		var err error
		if stepped {
			step, err = strconv.Atoi(stepText)
			require.NoError(t, err)
		}
		first, last := low, high
		if base != "*" {
			from, to, isRange := strings.Cut(base, "-")
			first, err = strconv.Atoi(from)
			require.NoError(t, err)
			switch {
			case isRange:
				last, err = strconv.Atoi(to)
				require.NoError(t, err)
			case !stepped:
				last = first
			}
		}
		for v := first; v <= last; v += step {
			f.values[v] = true
		}
	}
	return f
}

// vixieDay and vixieMinute are the test in Vixie cron's find_jobs.
func vixieDay(f [5]vixieField, at time.Time) bool {
	day, weekday := f[2].values[at.Day()], f[4].values[int(at.Weekday())]
	either := day || weekday
	if f[2].star || f[4].star {
		either = day && weekday
	}
	return f[3].values[int(at.Month())] && either
}

func vixieMinute(f [5]vixieField, minute int) bool {
	return f[0].values[minute%60] && f[1].values[minute/60]
}

// vixieTimes looks at every minute.
func vixieTimes(f [5]vixieField, start, end time.Time) []time.Time {
	var all []time.Time
	for day := start; day.Before(end); day = day.AddDate(0, 0, 1) {
		for minute := 0; minute < 24*60 && vixieDay(f, day); minute++ {
			if vixieMinute(f, minute) {
				all = append(all, day.Add(time.Duration(minute)*time.Minute))
			}
		}
	}
	return all
}

func randomField(r *rand.Rand, low, high int) string {
	var items []string
	for range 1 + r.IntN(2) {
		a := low + r.IntN(high-low+1)
		b := a + r.IntN(high-a+1)
		step := 1 + r.IntN(high+10)
		items = append(items, []string{
			"*", "*", fmt.Sprintf("*/%d", step), strconv.Itoa(a), fmt.Sprintf("%d-%d", a, b), fmt.Sprintf("%d-%d/%d", a, b, step),
		}[r.IntN(6)])
	}
	return strings.Join(items, ",")
}

// What is written fires at the minutes at which cron starts its line: the either-or of the day fields, stars with steps,
// steps beyond their range, Sundays written as 7.
func TestSchedulesFireAsInCron(t *testing.T) {
	t.Parallel()
	start := time.Date(2027, 12, 1, 0, 0, 0, 0, time.UTC)
	end := start.AddDate(0, 0, 100) // into a leap February
	r := rand.New(rand.NewPCG(5, 2026))
	fired := 0
	for range 200 {
		fields := []string{randomField(r, 0, 59), randomField(r, 0, 23), randomField(r, 1, 31), randomField(r, 1, 12), randomField(r, 0, 7)}
		if r.IntN(2) == 0 {
			fields[3] = "*"
		}
		vixie := [5]vixieField{
			readVixie(t, fields[0], 0, 59), readVixie(t, fields[1], 0, 23), readVixie(t, fields[2], 1, 31),
			readVixie(t, fields[3], 1, 12), readVixie(t, fields[4], 0, 7),
		}
		vixie[4].values[0] = vixie[4].values[0] || vixie[4].values[7]
		want := vixieTimes(vixie, start, end)
		s := readCronSchedule(fields)
		schedule, err := jobs.ParseSchedule(s.text, jobs.ScheduleOptions{DayMatch: dayMatch(s)})
		if err != nil {
			require.ErrorContains(t, err, "never fires", strings.Join(fields, " "))
			require.Empty(t, want, strings.Join(fields, " "))
			continue
		}
		got, _ := schedule.Between(start.Add(-time.Second), end.Add(-time.Second), 200_000)
		require.Len(t, got, len(want), "%s, written as %s", strings.Join(fields, " "), s.text)
		for i := range want {
			if want[i].Equal(got[i]) {
				continue
			}
			require.Fail(t, "another minute", "%s, written as %s: %s, not %s", strings.Join(fields, " "), s.text, got[i], want[i])
		}
		fired += len(got)
	}
	require.Greater(t, fired, 50_000)
}
