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

// neverBecause says why no date matches; empty when some date does. Only a day of the month can be out of reach: a
// restricted day of the week matches by itself, and each of the other fields has a value.
func (c *calendar) neverBecause() string {
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

// enumerate joins words as a sentence does: "April, June and November".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
