package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Hash names everything that decides the instants: 32 hexadecimal digits. It is stable across processes, platforms and
// ways of writing the same fields ("@daily" and "0  0 * * *"; the order of a list), and changes with the zone, the
// options, the dates of the calendars and ZoneVersion. What a schedule does not use is not in it, so that a new option
// leaves the hashes of those without it, and so their place in the plan, alone.
func (s *Schedule) Hash() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schedule 1\n%s\nzone %s\ndst %s\nseconds %t\ntzdata %s\n",
		s.rulesText(), s.location, s.dst, s.seconds, ZoneVersion)
	if s.from > firstInstant {
		fmt.Fprintf(&b, "from %d\n", s.from)
	}
	if s.until <= lastInstant {
		fmt.Fprintf(&b, "until %d\n", s.until)
	}
	b.WriteString(s.dates.text())
	b.WriteString(blackoutsText(s.blackouts))
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:16])
}

// rulesText is the rules in one order, each once.
func (s *Schedule) rulesText() string {
	texts := make([]string, len(s.rules))
	for i := range s.rules {
		texts[i] = s.rules[i].text()
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), "\n")
}

func (r *rule) text() string {
	if r.every > 0 {
		return fmt.Sprintf("every %ds", r.every)
	}
	return fmt.Sprintf("fields %s fixed %t", &r.pattern, r.fixed)
}
