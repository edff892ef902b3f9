package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// stamp is an instant in a sentence.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// instant is one with the job's own time beside it.
func (t *teller) instant(at time.Time) string {
	local := at.In(t.zone)
	if _, offset := local.Zone(); offset == 0 {
		return stamp(at)
	}
	layout := "15:04:05 -07:00"
	if local.Format(time.DateOnly) != at.UTC().Format(time.DateOnly) {
		layout = "2006-01-02 " + layout
	}
	return stamp(at) + " (" + local.Format(layout) + ")"
}

// span is a duration in its two largest units: 3d4h, 2m5s, 1.2s.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	d = d.Round(time.Second)
	parts := []string{}
	for _, u := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / u.size; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, u.name))
			d -= n * u.size
		} else if len(parts) > 0 {
			break
		}
	}
	return strings.Join(parts[:min(2, len(parts))], "")
}

// list is "a", "a and b", "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// labels are "zone=eu, disk=ssd".
func labels(l map[string]string) string {
	if len(l) == 0 {
		return "no labels"
	}
	parts := []string{}
	for _, key := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, key+"="+l[key])
	}
	return strings.Join(parts, ", ")
}

// wanted are the labels of only_on: "zone=eu or us, disk=ssd".
func wanted(l jobs.Labels) string {
	parts := []string{}
	for _, key := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, key+"="+strings.Join(l[key], " or "))
	}
	return strings.Join(parts, ", ")
}

// by is " by ann", or nothing.
func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

// saying is ": enough", or nothing.
func saying(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if word != "" && strings.IndexFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:@%+=,", r)
	}) < 0 && word[0] != '-' {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
