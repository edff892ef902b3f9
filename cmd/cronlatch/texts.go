package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/wire"
)

// counted is "1 job", "2 jobs".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// relative is a distance in time as people say it: the two largest units.
func relative(d time.Duration) string {
	if d < 0 {
		return span(-d) + " ago"
	}
	return "in " + span(d)
}

// span is a duration in its two largest units: 3d4h, 2m5s, 1.2s, 35ms.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	d = d.Round(time.Second)
	var parts []string
	for _, u := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / u.size; n > 0 || len(parts) > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, u.name))
			d -= n * u.size
		}
	}
	parts = parts[:min(2, len(parts))]
	if len(parts) == 2 && strings.HasPrefix(parts[1], "0") {
		parts = parts[:1]
	}
	return strings.Join(parts, "")
}

// stamp is an instant in a table: UTC, to the second.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func stampOrNone(t *time.Time) string {
	if t == nil {
		return ""
	}
	return stamp(*t)
}

// durationText is Go's form without its zeros: 1h30m, not 1h30m0s.
func durationText(d time.Duration) string { return wire.DurationText(d) }
