package jobs

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// longestMonth is the number of days a month can have in some year.
func longestMonth(m time.Month) int {
	const leap = 2000
	return monthLength(leap, m)
}

// neverBecause says why no date matches; empty when some date does. Without L, W, # and day_match: all only a day of the
// month can be out of reach: a restricted day of the week matches by itself, and each of the other fields has a value.
func (c *pattern) neverBecause() string {
	if c.monthly != (monthly{}) || c.all && !c.domAny && !c.dowAny {
		return c.neverInACycle()
	}
	if c.domAny || !c.dowAny {
		return ""
	}
	var months []string
	for m := time.January; m <= time.December; m++ {
		if c.month>>m&1 == 0 {
			continue
		}
		if bits.TrailingZeros64(c.dom) <= longestMonth(m) {
			return ""
		}
		months = append(months, m.String())
	}
	verb := "has"
	if len(months) > 1 {
		verb = "have"
	}
	var days []string
	for set := c.dom; set != 0; set &= set - 1 {
		days = append(days, strconv.Itoa(bits.TrailingZeros64(set)))
	}
	return fmt.Sprintf("%s %s no day %s", enumerate(months, "and"), verb, enumerate(days, "or"))
}

// neverInACycle looks at every month of 400 years, after which dates fall on the same days of the week again.
func (c *pattern) neverInACycle() string {
	const start, years = 2000, 400
	first := time.Date(start, time.January, 1, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
	for i := range years * 12 {
		year, month := start+i/12, time.Month(i%12+1)
		if c.month>>month&1 == 1 && c.days(year, month, first) != 0 {
			return ""
		}
		first += int64(monthLength(year, month))
	}
	if c.all {
		return "no date matches both day fields, as day_match: all demands"
	}
	return "none of its months has such a day"
}

// enumerate joins words as a sentence does: "April, June and November".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
