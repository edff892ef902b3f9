package main

import (
	"time"
)

// clockNote says what a change of the zone's offset has to do with an instant: it is the first one after a gap, its
// local time exists twice, or the offset is another one than that of the instant before.
func clockNote(before, at time.Time) string {
	start, end := at.ZoneBounds()
	if !start.IsZero() {
		switch gap := offsetOf(at) - offsetOf(start.Add(-time.Second)); {
		case gap > 0 && at.Equal(start):
			unmoved := start.In(time.FixedZone("", int((offsetOf(start) - gap).Seconds()))) // on a clock that nobody moved
			form, dash := "15:04", "-"
			if unmoved.Day() != start.Day() {
				form, dash = "2006-01-02 15:04", " to "
			}
			return "clocks go forward: " + unmoved.Format(form) + dash + start.Format(form) + " is missing"
		case gap < 0 && at.Before(start.Add(-gap)):
			return "clocks went back: the second " + at.Format("15:04")
		}
	}
	if !end.IsZero() {
		if gap := offsetOf(end) - offsetOf(at); gap < 0 && !at.Before(end.Add(gap)) {
			return "clocks go back: the first " + at.Format("15:04")
		}
	}
	if offsetOf(before) != offsetOf(at) {
		return "clocks changed: " + before.Format("-07:00") + " became " + at.Format("-07:00")
	}
	return ""
}

// offsetOf is the distance from UTC at an instant of the zone.
func offsetOf(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
