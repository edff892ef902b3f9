package jobs

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
)

// pattern is the sets of values that match, one bit a value.
type pattern struct {
	second, minute, hour, dom, month, dow uint64

	// Any day: this field leaves the decision to the other one. When neither is set, either field matches, or both must.
	domAny, dowAny, all bool

	monthly monthly
	dates   *dateRule // the calendars; nil for none
}

// pattern lets robfig's parser read the normalized fields, and adds what that does not know. This is the only place that knows it; its Next, its runner,
// its descriptors and its zone prefix are not used, because each has a fault that normalize exists to avoid.
func (n normalized) pattern() (pattern, error) {
	parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	parsed, err := parser.Parse(strings.Join(n.fields[:], " "))
	if err != nil {
		return pattern{}, fmt.Errorf("parse normalized fields: %w", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return pattern{}, fmt.Errorf("parse normalized fields: unexpected %T", parsed)
	}
	const star = 1 << 63 // robfig's mark for "there was a star somewhere"; ours are domAny and dowAny
	p := pattern{
		second: spec.Second &^ star, minute: spec.Minute &^ star, hour: spec.Hour &^ star,
		dom: spec.Dom &^ star, month: spec.Month &^ star, dow: spec.Dow &^ star,
		domAny: n.domAny, dowAny: n.dowAny, monthly: n.monthly,
	}
	if n.domNone {
		p.dom = 0
	}
	if n.dowNone {
		p.dow = 0
	}
	return p, nil
}

// String is canonical: the same sets have the same text, however they were written.
func (c *pattern) String() string {
	day := func(set uint64, unrestricted bool) string {
		if unrestricted {
			return "*"
		}
		return setText(set)
	}
	text := strings.Join([]string{
		setText(c.second), setText(c.minute), setText(c.hour), day(c.dom, c.domAny), setText(c.month), day(c.dow, c.dowAny),
	}, " ")
	if m := c.monthly; m != (monthly{}) {
		text += fmt.Sprintf(" last %x near %x nearlast %x nth %x lastweek %x", m.last, m.near, m.nearLast, m.nth, m.lastWeek)
	}
	if c.all && !c.domAny && !c.dowAny {
		text += " all"
	}
	return text
}

// setText lists the members of a set as ranges: 0-3,7.
func setText(set uint64) string {
	var parts []string
	for set != 0 {
		low := bits.TrailingZeros64(set)
		high := low + bits.TrailingZeros64(^(set >> low)) - 1
		set &^= (1<<(high-low+1) - 1) << low
		if low == high {
			parts = append(parts, strconv.Itoa(low))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d-%d", low, high))
	}
	return strings.Join(parts, ",")
}
