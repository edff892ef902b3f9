package jobs

import (
	"fmt"
	"time"
)

// ParseMoment reads an instant (RFC 3339, like 2026-05-01T06:00:00+02:00) or a date (2026-05-01), which is the first
// instant of that day in the zone. The error is a *ScheduleError.
func ParseMoment(text string, loc *time.Location) (time.Time, error) {
	if day, ok := parseDate(text); ok {
		return time.Unix(startOfDay(loc, day), 0).In(loc), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, &ScheduleError{
		Code:    CodeWindow,
		Message: quote(text) + " is neither a date like 2026-05-01 nor an instant with its offset like 2026-05-01T06:00:00Z",
		Length:  len(text),
	}
}

// parseDate reads YYYY-MM-DD as a number of days since 1970-01-01.
func parseDate(text string) (int64, bool) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Year() < 1 {
		return 0, false
	}
	return floorDiv(t.Unix(), secondsPerDay), true
}

func dateText(day int64) string { return time.Unix(day*secondsPerDay, 0).UTC().Format(time.DateOnly) }

// setWindow bounds the instants to [from, until).
func (s *Schedule) setWindow(from, until time.Time) error {
	s.from, s.until = firstInstant, lastInstant+1
	if !from.IsZero() {
		s.from = max(s.from, ceilUnix(from))
	}
	if !until.IsZero() {
		s.until = min(s.until, ceilUnix(until))
	}
	if s.from < s.until {
		return nil
	}
	return &ScheduleError{
		Code: CodeWindow, Item: -1,
		Message: fmt.Sprintf("until (%s) is not after from (%s)", until.Format(time.RFC3339), from.Format(time.RFC3339)),
	}
}

// ceilUnix is the first whole second that is not before the instant: instants of schedules are whole seconds.
func ceilUnix(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// checkEver refuses what the options leave nothing of. Without them every schedule fires, which parseRule has seen to.
func (s *Schedule) checkEver() error {
	bounded := s.from > firstInstant || s.until <= lastInstant
	if !bounded && s.dates == nil && len(s.blackouts) == 0 {
		return nil
	}
	from := s.from
	if from == firstInstant {
		from = min(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC).Unix(), s.until-horizon)
	}
	if _, ok := s.firstFrom(from, min(from+horizon, s.until)); ok {
		return nil
	}
	why := "its calendars leave no instant of it"
	switch {
	case s.dates == nil && len(s.blackouts) == 0:
		why = "no instant lies between from and until"
	case bounded:
		why = "from, until and its calendars leave no instant of it"
	}
	return &ScheduleError{
		Code: CodeScheduleNever, Item: -1,
		Message: fmt.Sprintf("%s never fires: %s", quote(s.String()), why),
	}
}
