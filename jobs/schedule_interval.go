package jobs

import "time"

// intervalsFrom is where ShortestInterval begins to look: today's rules of the zones hold from there on. It is the same
// instant for ever, so that a file that is right stays right.
const intervalsFrom = 1767225600 // 2026-01-01T00:00:00Z

// ShortestInterval is the shortest time between two instants in a row; 0 when there are not two. It looks at 300
// instants of each text of the list, and how soon after them the next one of any text comes: ten months of a daily
// schedule, in which every change of the clocks lies, and every kind of step of a more frequent one.
func (s *Schedule) ShortestInterval() time.Duration {
	const instants, span = 300, horizon / 4
	shortest := int64(0)
	start := max(s.from, intervalsFrom)
	for i := range s.rules {
		from := start
		for range instants {
			at, ok := s.atOrAfter(&s.rules[i], from, min(start+span, s.until))
			if !ok {
				break
			}
			from = at + 1
			if s.behindBlackouts(at) != at {
				continue
			}
			next, ok := s.firstFrom(from, min(from+span, s.until))
			if ok && (shortest == 0 || next-at < shortest) {
				shortest = next - at
			}
		}
	}
	return time.Duration(shortest) * time.Second
}
