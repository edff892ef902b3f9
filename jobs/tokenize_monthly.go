package jobs

import (
	"fmt"
	"strings"
)

// monthly is the days of a schedule that each month decides anew. It stays outside the fields that robfig's parser
// reads, which knows none of them.
type monthly struct {
	last     uint64 // bit n: n days before the last of the month (L, L-3)
	near     uint64 // bit n: the weekday nearest to day n (15W)
	nearLast uint64 // bit n: the weekday nearest to n days before the last (LW, L-3W)
	nth      uint64 // bit 7*(n-1)+d: the n-th day d of the week (MON#2)
	lastWeek uint64 // bit d: the last day d of the week (5L)
}

func (m monthly) or(o monthly) monthly {
	return monthly{m.last | o.last, m.near | o.near, m.nearLast | o.nearLast, m.nth | o.nth, m.lastWeek | o.lastWeek}
}

// monthly reads an item with L, W or #; false when it has none of them.
func (s *source) monthly(rule fieldRule, t token) (monthly, bool, *ScheduleError) {
	if !rule.day || t.text == "" {
		return monthly{}, false, nil
	}
	upper := strings.ToUpper(t.text)
	if rule.names == nil {
		if upper[0] != 'L' && !strings.HasSuffix(upper, "W") {
			return monthly{}, false, nil
		}
		m, err := s.dayOfMonth(rule, t, upper)
		return m, true, err
	}
	if day, n, found := t.cut("#"); found {
		m, err := s.nthWeekday(rule, t, day, n)
		return m, true, err
	}
	if !strings.HasSuffix(upper, "L") {
		return monthly{}, false, nil
	}
	if upper == "L" {
		return monthly{}, true, s.fault(t.span(), "L alone in the field day of week", "write 5L for the last Friday of the month, or L in the field day of month")
	}
	day, err := s.value(rule, token{t.text[:len(t.text)-1], t.offset})
	return monthly{lastWeek: 1 << rule.fold(day)}, true, err
}

// dayOfMonth reads L, L-3, LW, L-3W and 15W.
func (s *source) dayOfMonth(rule fieldRule, t token, upper string) (monthly, *ScheduleError) {
	body, near := strings.CutSuffix(upper, "W")
	before, fromEnd := strings.CutPrefix(body, "L")
	if !fromEnd {
		if body == "" || strings.Contains(body, "-") {
			return monthly{}, s.fault(t.span(), "W goes with one day of the month", "write it like 15W or LW")
		}
		day, err := s.value(rule, token{t.text[:len(body)], t.offset})
		return monthly{near: 1 << day}, err
	}
	days := 0
	if before != "" {
		n, ok := number(strings.TrimPrefix(before, "-"))
		if !ok || before[0] != '-' {
			return monthly{}, s.fault(t.span(), quote(t.text)+" is not understood", "write L, or L-3 for three days before the last, or LW")
		}
		if n >= rule.max {
			return monthly{}, s.never(t.span(), fmt.Sprintf("%s never comes: no month has a day %d days before its last", brief(t.text), min(n, 999)))
		}
		days = n
	}
	if near {
		return monthly{nearLast: 1 << days}, nil
	}
	return monthly{last: 1 << days}, nil
}

// nthWeekday reads MON#2 and 1#2.
func (s *source) nthWeekday(rule fieldRule, whole, dayText, nText token) (monthly, *ScheduleError) {
	day, err := s.value(rule, dayText)
	if err != nil {
		return monthly{}, err
	}
	n, ok := number(nText.text)
	switch {
	case !ok:
		return monthly{}, s.fault(whole.span(), fmt.Sprintf("week %s is not a number", quote(nText.text)), "write MON#2 for the second Monday of the month, 1L for the last one")
	case n == 0 || n > 5:
		return monthly{}, s.never(whole.span(), brief(whole.text)+" never comes: a month has the weeks #1 to #5")
	}
	return monthly{nth: 1 << (7*(n-1) + rule.fold(day))}, nil
}

// never is a fault in a part of the text that no date can match.
func (s *source) never(at span, problem string) *ScheduleError {
	err := s.fault(at, problem, "")
	err.Code = CodeScheduleNever
	return err
}
