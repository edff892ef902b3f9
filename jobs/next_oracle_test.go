package jobs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// The oracle is a second, slow implementation of the rules in DESIGN 5 that shares nothing with the package: it never
// reads the text of a schedule, but makes the sets first and writes a text for them; it walks over local times minute by
// minute and tries every offset of the zone on each. It knows nothing of periods or of time.ZoneBounds.

type oracleField struct {
	text       string
	set        map[int]bool
	star       bool // exactly '*'
	valuesOnly bool
}

type oracle struct {
	second, minute, hour, dom, month, dow oracleField
	options                               jobs.ScheduleOptions
}

// oracleRange says what a field may be made of.
type oracleRange struct {
	min, max int
	names    []string
	sunday7  bool
}

func (r oracleRange) print(rnd *rand.Rand, value int) string {
	if r.sunday7 && value == 0 && rnd.IntN(3) == 0 {
		return "7"
	}
	if r.names != nil && rnd.IntN(3) == 0 {
		return r.names[value-r.min]
	}
	return strconv.Itoa(value)
}

// random makes a field: a star, or one to three items.
func (r oracleRange) random(rnd *rand.Rand, starOdds float64, valuesOnly bool) oracleField {
	f := oracleField{set: map[int]bool{}, valuesOnly: true}
	if rnd.Float64() < starOdds && !valuesOnly {
		for v := r.min; v <= r.max; v++ {
			f.set[v] = true
		}
		f.text, f.star, f.valuesOnly = "*", true, false
		return f
	}
	var items []string
	for range 1 + rnd.IntN(3) {
		low, size := r.min+rnd.IntN(r.max-r.min+1), r.max-r.min+1
		kind := rnd.IntN(5)
		if valuesOnly {
			kind = 0
		}
		step, last, text := 1, low, r.print(rnd, low)
		switch kind {
		case 1, 2: // a range, which may wrap
			last = low + rnd.IntN(size)
			high := r.print(rnd, r.min+(last-r.min)%size)
			if low == 0 && last == 0 { // "0-7" is the whole week, "0-0" a Sunday
				high = text
			}
			text += "-" + high
			if kind == 2 {
				step = 1 + rnd.IntN(last-low+1)
				text += fmt.Sprintf("/%d", step)
			}
		case 3: // a step over everything
			low, last, step = r.min, r.max, 1+rnd.IntN(size)
			text = fmt.Sprintf("*/%d", step)
		case 4: // from a value to the end
			last = r.max
			step = 1 + rnd.IntN(last-low+1)
			text += fmt.Sprintf("/%d", step)
		}
		f.valuesOnly = f.valuesOnly && kind == 0
		for v := low; v <= last; v += step {
			f.set[r.min+(v-r.min)%size] = true
		}
		items = append(items, text)
	}
	f.text = strings.Join(items, ",")
	return f
}

// newOracle makes a random schedule; about half are fixed.
func newOracle(rnd *rand.Rand, zone string) *oracle {
	fixed := rnd.IntN(2) == 0
	days := strings.Fields("SUN MON TUE WED THU FRI SAT")
	months := strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
	o := &oracle{
		second: oracleField{text: "0", set: map[int]bool{0: true}, valuesOnly: true},
		minute: oracleRange{max: 59}.random(rnd, 0.2, fixed),
		hour:   oracleRange{max: 23}.random(rnd, 0.5, fixed),
		dom:    oracleRange{min: 1, max: 31}.random(rnd, 0.7, false),
		month:  oracleRange{min: 1, max: 12, names: months}.random(rnd, 0.8, false),
		dow:    oracleRange{max: 6, names: days, sunday7: true}.random(rnd, 0.7, false),
	}
	o.options = jobs.ScheduleOptions{Timezone: zone, DST: []jobs.DST{jobs.DSTOnce, jobs.DSTSkip, jobs.DSTBoth}[rnd.IntN(3)]}
	if rnd.IntN(4) == 0 {
		o.options.Seconds = true
		o.second = oracleRange{max: 59}.random(rnd, 0, !fixed || rnd.IntN(2) == 0) // few minutes, or few seconds
	}
	return o
}

func (o *oracle) text() string {
	fields := []string{o.minute.text, o.hour.text, o.dom.text, o.month.text, o.dow.text}
	if o.options.Seconds {
		fields = append([]string{o.second.text}, fields...)
	}
	return strings.Join(fields, " ")
}

func (o *oracle) fixed() bool { return o.second.valuesOnly && o.minute.valuesOnly && o.hour.valuesOnly }

// matches asks one local time.
func (o *oracle) matches(l time.Time) bool {
	day := o.dom.set[l.Day()] && o.dow.set[int(l.Weekday())]
	if !o.dom.star && !o.dow.star {
		day = o.dom.set[l.Day()] || o.dow.set[int(l.Weekday())]
	}
	return day && o.month.set[int(l.Month())] && o.hour.set[l.Hour()] && o.minute.set[l.Minute()]
}

// between lists the instants in (from, until] that belong to local times of the days around.
func (o *oracle) between(loc *time.Location, from, until int64) []int64 {
	offsets := offsetsAround(loc, from, until)
	var found []int64
	day := 24 * time.Hour
	start := time.Unix(from, 0).UTC().Add(-2 * day).Truncate(day) // written as if it were local
	for l := start; l.Unix() <= until+2*86400; l = l.Add(time.Minute) {
		if !o.matches(l) {
			continue
		}
		for second := range o.second.set {
			found = append(found, o.instants(loc, l.Unix()+int64(second), offsets)...)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return slices.DeleteFunc(found, func(u int64) bool { return u <= from || u > until })
}

// instants applies the rules for one local time.
func (o *oracle) instants(loc *time.Location, local int64, offsets []int64) []int64 {
	var at []int64
	for _, off := range offsets {
		if u := local - off; zoneOffset(loc, u) == off {
			at = append(at, u)
		}
	}
	slices.Sort(at)
	switch dst := o.options.DST; {
	case !o.fixed():
		return at
	case len(at) > 0 && dst == jobs.DSTBoth:
		return at
	case len(at) > 0:
		return at[:1]
	case dst == jobs.DSTSkip:
		return nil
	}
	u := local - slices.Max(offsets) // its local time is not after the missing one
	for _, step := range []int64{900, 1} {
		for u+step+zoneOffset(loc, u+step) <= local {
			u += step
		}
	}
	gap := (u + 1 + zoneOffset(loc, u+1)) - (u + zoneOffset(loc, u)) - 1
	if gap > 3*3600 {
		return nil
	}
	return []int64{u + 1}
}

func zoneOffset(loc *time.Location, u int64) int64 {
	_, off := time.Unix(u, 0).In(loc).Zone()
	return int64(off)
}

// offsetsAround samples densely enough: no zone has two changes within an hour.
func offsetsAround(loc *time.Location, from, until int64) []int64 {
	var offsets []int64
	for u := from - 4*86400; u <= until+4*86400; u += 1800 {
		if off := zoneOffset(loc, u); !slices.Contains(offsets, off) {
			offsets = append(offsets, off)
		}
	}
	return offsets
}
