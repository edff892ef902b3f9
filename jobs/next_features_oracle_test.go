package jobs_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// The oracle of everything beside plain fields: lists, H, L, W, #, day_match, from, until, calendars. Like the oracle of
// the fields it makes sets and dates first and texts for them, asks every date and every minute, and shares nothing with
// the package.

// dateTest asks one date, given as its midnight in UTC.
type dateTest func(time.Time) bool

// featureRule is one item of a list.
type featureRule struct {
	oracle

	days, weekdays []dateTest // what L, W and # mean, in addition to the sets
	every          int64      // instead of all that
	text           string
}

// featureOracle is a whole schedule with its options.
type featureOracle struct {
	rules     []featureRule
	options   jobs.ScheduleOptions
	from      int64
	until     int64
	include   []dateTest // of each calendar
	exclude   []dateTest
	blackouts []func(loc *time.Location, at int64) bool
}

const featureJob = "report:daily"

// newFeatures makes a random schedule; its calendars and bounds lie around an instant.
func newFeatures(rnd *rand.Rand, zone string, near int64) *featureOracle {
	f := &featureOracle{from: -1 << 62, until: 1 << 62}
	f.options = jobs.ScheduleOptions{
		Timezone: zone, Job: featureJob, DST: []jobs.DST{jobs.DSTOnce, jobs.DSTSkip, jobs.DSTBoth}[rnd.IntN(3)],
		DayMatch: []jobs.DayMatch{jobs.DayMatchAny, jobs.DayMatchAll}[rnd.IntN(2)],
	}
	shifts := []jobs.Shift{jobs.ShiftNone, jobs.ShiftNext, jobs.ShiftPrevious}
	withCalendars := rnd.IntN(2) == 0
	if withCalendars {
		f.options.Calendars.Shift = shifts[rnd.IntN(3)]
	}
	for range 1 + rnd.IntN(3) {
		f.rules = append(f.rules, f.newRule(rnd, zone))
	}
	if withCalendars {
		f.addCalendars(rnd, near)
	}
	f.addBounds(rnd, near)
	return f
}

func (f *featureOracle) newRule(rnd *rand.Rand, zone string) featureRule {
	if rnd.IntN(8) == 0 && f.options.Calendars.Shift != jobs.ShiftNext && f.options.Calendars.Shift != jobs.ShiftPrevious {
		every := 1 + rnd.Int64N(200_000)
		return featureRule{every: every, text: fmt.Sprintf("@every %ds", every)}
	}
	r := featureRule{oracle: *newOracle(rnd, zone)}
	for r.options.Seconds {
		r.oracle = *newOracle(rnd, zone)
	}
	r.options.DST = f.options.DST
	if rnd.IntN(2) == 0 {
		r.month = oracleRange{min: 1, max: 12}.random(rnd, 1, false)
	}
	if rnd.IntN(3) == 0 {
		f.spread(rnd, &r)
	}
	if rnd.IntN(2) == 0 {
		r.addDay(rnd)
	}
	if rnd.IntN(2) == 0 {
		r.addWeekday(rnd)
	}
	r.text = r.oracle.text()
	return r
}

// spread replaces minute and hour by H.
func (f *featureOracle) spread(rnd *rand.Rand, r *featureRule) {
	low, high := rnd.IntN(30), 30+rnd.IntN(30)
	step := 1 + rnd.IntN(30)
	switch rnd.IntN(3) {
	case 0:
		r.minute = oracleField{text: "H", set: map[int]bool{hashOf("minute", 60): true}, valuesOnly: true}
	case 1:
		r.minute = oracleField{text: fmt.Sprintf("h(%d-%d)", low, high), set: map[int]bool{low + hashOf("minute", high-low+1): true}, valuesOnly: true}
	default:
		r.minute = oracleField{text: fmt.Sprintf("H/%d", step), set: map[int]bool{}}
		for v := hashOf("minute", step); v < 60; v += step {
			r.minute.set[v] = true
		}
	}
	if rnd.IntN(2) == 0 {
		r.hour = oracleField{text: "H", set: map[int]bool{hashOf("hour", 24): true}, valuesOnly: true}
	}
}

func hashOf(field string, count int) int {
	sum := sha256.Sum256([]byte("H\x00" + field + "\x00" + featureJob))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(count))
}

// addDay puts an L or a W into the days of the month, or in their place.
func (r *featureRule) addDay(rnd *rand.Rand) {
	n := rnd.IntN(10)
	lastOf := func(d time.Time) time.Time { return time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC) }
	var text string
	var test dateTest
	switch rnd.IntN(4) {
	case 0:
		text, test = "L", func(d time.Time) bool { return d.Equal(lastOf(d)) }
	case 1:
		text, test = fmt.Sprintf("L-%d", n), func(d time.Time) bool { return d.AddDate(0, 0, n).Equal(lastOf(d)) }
	case 2:
		text, test = "LW", func(d time.Time) bool { return d.Equal(nearestWeekday(lastOf(d))) }
	default:
		day := 1 + rnd.IntN(31)
		text, test = fmt.Sprintf("%dW", day), func(d time.Time) bool {
			wanted := time.Date(d.Year(), d.Month(), day, 0, 0, 0, 0, time.UTC)
			return wanted.Month() == d.Month() && d.Equal(nearestWeekday(wanted))
		}
	}
	r.days = append(r.days, test)
	r.dom = withItem(rnd, r.dom, text)
}

func nearestWeekday(d time.Time) time.Time {
	for _, delta := range []int{0, -1, 1, -2, 2} {
		near := d.AddDate(0, 0, delta)
		if near.Month() == d.Month() && near.Weekday() != time.Saturday && near.Weekday() != time.Sunday {
			return near
		}
	}
	panic("no weekday within two days")
}

// addWeekday puts an L or a # into the days of the week, or in their place.
func (r *featureRule) addWeekday(rnd *rand.Rand) {
	weekday := time.Weekday(rnd.IntN(7))
	name := []string{strconv.Itoa(int(weekday)), weekday.String(), strings.ToUpper(weekday.String()[:3])}[rnd.IntN(3)]
	n := 1 + rnd.IntN(5)
	text, test := name+"L", func(d time.Time) bool { return d.Weekday() == weekday && d.AddDate(0, 0, 7).Month() != d.Month() }
	if rnd.IntN(2) == 0 {
		text, test = fmt.Sprintf("%s#%d", name, n), func(d time.Time) bool { return d.Weekday() == weekday && (d.Day()-1)/7+1 == n }
	}
	r.weekdays = append(r.weekdays, test)
	r.dow = withItem(rnd, r.dow, text)
}

func withItem(rnd *rand.Rand, f oracleField, text string) oracleField {
	if f.star || rnd.IntN(2) == 0 {
		return oracleField{text: text, set: map[int]bool{}}
	}
	f.text += "," + text
	return f
}

// addCalendars makes one or two calendars with dates around an instant.
func (f *featureOracle) addCalendars(rnd *rand.Rand, near int64) {
	middle := time.Unix(near, 0).UTC().Truncate(24 * time.Hour)
	for range 1 + rnd.IntN(2) {
		var o jobs.CalendarOptions
		var tests []dateTest
		for range 1 + rnd.IntN(4) {
			date := middle.AddDate(0, 0, rnd.IntN(9)-4)
			o.Dates = append(o.Dates, date.Format(time.DateOnly))
			tests = append(tests, date.Equal)
		}
		if rnd.IntN(2) == 0 {
			yearly := middle.AddDate(0, 0, rnd.IntN(9)-4)
			o.Dates = append(o.Dates, yearly.Format("01-02"))
			tests = append(tests, func(d time.Time) bool { return d.Month() == yearly.Month() && d.Day() == yearly.Day() })
		}
		if rnd.IntN(2) == 0 {
			weekday := time.Weekday(rnd.IntN(7))
			o.Weekdays = []string{weekday.String()}
			tests = append(tests, func(d time.Time) bool { return d.Weekday() == weekday })
		}
		c, err := jobs.ParseCalendar("oracle", o)
		if err != nil {
			panic(err)
		}
		has := func(d time.Time) bool { return slices.ContainsFunc(tests, func(t dateTest) bool { return t(d) }) }
		if rnd.IntN(3) == 0 {
			f.options.Calendars.Include, f.include = append(f.options.Calendars.Include, c), append(f.include, has)
		} else {
			f.options.Calendars.Exclude, f.exclude = append(f.options.Calendars.Exclude, c), append(f.exclude, has)
		}
	}
}

// addBounds adds from, until and blackouts.
func (f *featureOracle) addBounds(rnd *rand.Rand, near int64) {
	if rnd.IntN(4) == 0 {
		f.from = near - rnd.Int64N(48*3600)
		f.options.From = time.Unix(f.from, 0)
	}
	if rnd.IntN(4) == 0 {
		f.until = near + rnd.Int64N(48*3600) + 1
		f.options.Until = time.Unix(f.until, 0)
	}
	if rnd.IntN(4) == 0 {
		start, end := near+rnd.Int64N(48*3600)-24*3600, near+24*3600+rnd.Int64N(9*3600)
		f.addBlackout(time.Unix(start, 0).UTC().Format(time.RFC3339), time.Unix(end, 0).UTC().Format(time.RFC3339),
			func(_ *time.Location, at int64) bool { return at >= start && at < end })
	}
	if rnd.IntN(4) == 0 {
		from, length := rnd.IntN(1440), 1+rnd.IntN(1000)
		end := (from + length) % 1440
		f.addBlackout(fmt.Sprintf("%02d:%02d", from/60, from%60), fmt.Sprintf("%02d:%02d", end/60, end%60), func(loc *time.Location, at int64) bool {
			local := time.Unix(at, 0).In(loc)
			second := local.Hour()*3600 + local.Minute()*60 + local.Second()
			return (second-from*60+86400)%86400 < length*60
		})
	}
}

func (f *featureOracle) addBlackout(from, until string, test func(*time.Location, int64) bool) {
	b, err := jobs.ParseBlackout(from, until, time.UTC)
	if err != nil {
		panic(err)
	}
	f.options.Calendars.Blackout = append(f.options.Calendars.Blackout, b)
	f.blackouts = append(f.blackouts, test)
}

func (f *featureOracle) texts() []string {
	texts := make([]string, len(f.rules))
	for i, r := range f.rules {
		texts[i] = r.text
	}
	return texts
}

func (f *featureOracle) allows(d time.Time) bool {
	has := func(t dateTest) bool { return t(d) }
	return (len(f.include) == 0 || slices.ContainsFunc(f.include, has)) && !slices.ContainsFunc(f.exclude, has)
}

// matchesDate asks the fields of one rule about one date.
func (f *featureOracle) matchesDate(r *featureRule, d time.Time) bool {
	has := func(t dateTest) bool { return t(d) }
	byDay := r.dom.set[d.Day()] || slices.ContainsFunc(r.days, has)
	byWeekday := r.dow.set[int(d.Weekday())] || slices.ContainsFunc(r.weekdays, has)
	day := byDay && byWeekday
	if !r.dom.star && !r.dow.star && f.options.DayMatch == jobs.DayMatchAny {
		day = byDay || byWeekday
	}
	return day && r.month.set[int(d.Month())]
}

// datesOf walks over two years of dates and moves each to where it ends up.
func (f *featureOracle) datesOf(r *featureRule, near int64) map[time.Time]bool {
	const farthest = 366
	dates := map[time.Time]bool{}
	middle := time.Unix(near, 0).UTC().Truncate(24 * time.Hour)
	step := map[jobs.Shift]int{jobs.ShiftNext: 1, jobs.ShiftPrevious: -1}[f.options.Calendars.Shift]
	for i := -farthest - 8; i <= farthest+8; i++ {
		d := middle.AddDate(0, 0, i)
		if !f.matchesDate(r, d) {
			continue
		}
		for moved := 0; moved <= farthest; moved++ {
			if to := d.AddDate(0, 0, moved*step); f.allows(to) {
				dates[to] = true
				break
			}
			if step == 0 {
				break
			}
		}
	}
	return dates
}

// between lists the instants in (from, until].
func (f *featureOracle) between(loc *time.Location, from, until int64) []int64 {
	var found []int64
	offsets := offsetsAround(loc, from, until)
	for i := range f.rules {
		found = append(found, f.ofRule(&f.rules[i], loc, offsets, from, until)...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return slices.DeleteFunc(found, func(u int64) bool {
		dropped := slices.ContainsFunc(f.blackouts, func(b func(*time.Location, int64) bool) bool { return b(loc, u) })
		return u <= from || u > until || u < f.from || u >= f.until || dropped
	})
}

func (f *featureOracle) ofRule(r *featureRule, loc *time.Location, offsets []int64, from, until int64) []int64 {
	var found []int64
	if r.every > 0 {
		for u := from; u <= until; u++ {
			if u%r.every != 0 {
				continue
			}
			local := time.Unix(u, 0).In(loc)
			if f.allows(time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)) {
				found = append(found, u)
			}
		}
		return found
	}
	dates := f.datesOf(r, (from+until)/2)
	start := time.Unix(from, 0).UTC().Add(-48 * time.Hour).Truncate(24 * time.Hour)
	for d := start; d.Unix() <= until+2*86400; d = d.Add(24 * time.Hour) {
		if !dates[d] {
			continue
		}
		for minute := range 1440 {
			if r.hour.set[minute/60] && r.minute.set[minute%60] {
				found = append(found, r.instants(loc, d.Unix()+int64(minute)*60, offsets)...)
			}
		}
	}
	return found
}
