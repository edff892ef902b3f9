package scheduler

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/jobs"
)

// AtError says that a text is no instant.
type AtError struct{ Text string }

func (e *AtError) Error() string {
	return strconv.Quote(e.Text) + " is no instant; write 2026-03-29T02:30:00Z, \"2026-03-29 02:30\" or 02:30 in the job's zone, or \"2h ago\""
}

// ParseAt reads an instant in RFC 3339, a date and a time of day in the zone, a time of day alone, which is the last time that it
// was so late there, or a time back from now: "2h ago" or "-2h", with units from s to w.
func ParseAt(text string, zone *time.Location, now time.Time) (q explain.Question, err error) {
	text = strings.TrimSpace(text)
	if at, err := time.Parse(time.RFC3339, text); err == nil && inRange(at) {
		return explain.Question{At: at}, nil
	}
	for _, layout := range []string{"2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if wall, err := time.Parse(layout, text); err == nil && inRange(wall) {
			return localAt(zone, wall), nil
		}
	}
	for _, layout := range []string{"15:04", time.TimeOnly} {
		if clock, err := time.Parse(layout, text); err == nil {
			return lastAt(zone, clock, now), nil
		}
	}
	if d, ok := parseBack(text); ok {
		return explain.Question{At: now.Add(-d)}, nil
	}
	return q, &AtError{text}
}

// inRange: what is behind it no database takes.
func inRange(at time.Time) bool { return at.UTC().Year() >= 1900 && at.UTC().Year() < 9999 }

func localAt(zone *time.Location, wall time.Time) explain.Question {
	l := jobs.LocalTimeIn(zone, wall)
	q := explain.Question{Local: strings.TrimSuffix(wall.Format(time.DateTime), ":00")}
	switch len(l.At) {
	case 0:
		q.At, q.Gap = l.Gap, l.Gap
	case 1:
		q.At = l.At[0]
	default:
		q.At, q.Twice = l.At[0], true
	}
	if q.At.IsZero() { // a zone that left out whole days: the clocks have a gap that is longer than any we know
		q.At = wall
	}
	return q
}

// lastAt is a time of day of today, or of yesterday where today's is still to come.
func lastAt(zone *time.Location, clock, now time.Time) explain.Question {
	here := now.In(zone)
	day := time.Date(here.Year(), here.Month(), here.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, time.UTC)
	if q := localAt(zone, day); !q.At.After(now) {
		return q
	}
	return localAt(zone, day.AddDate(0, 0, -1))
}

// parseBack reads "2h ago", "-2h", "1d12h ago".
func parseBack(text string) (time.Duration, bool) {
	back, minus := strings.CutPrefix(text, "-")
	back, ago := strings.CutSuffix(back, "ago")
	back = strings.TrimSpace(back)
	parts := regexp.MustCompile(`^(?:(\d{1,4})w)?(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,8})s)?$`).FindStringSubmatch(back)
	if minus == ago || back == "" || parts == nil {
		return 0, false
	}
	var d time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if n, err := strconv.Atoi(parts[i+1]); err == nil {
			d += time.Duration(n) * unit
		}
	}
	return d, d <= 200*365*24*time.Hour
}
