package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// clockChanges warns of schedules that the changes of the clocks in the coming year run twice or leave out. Fixed ones
// are not among them: dst decides about those.
func (l *linter) clockChanges(d *jobDraft, s *jobs.Schedule) {
	said := make([][]string, len(d.when.texts))
	for _, c := range s.ClockChanges(l.now, l.now.AddDate(1, 0, 0)) {
		if c.Fixed {
			continue
		}
		sentence := fmt.Sprintf("on %s it does not fire at %s", c.At.Format(time.DateOnly), c.Local) // it may at other times of that day
		if c.Twice {
			sentence = fmt.Sprintf("on %s it fires at %s twice", c.At.Format(time.DateOnly), c.Local)
		}
		said[c.Item] = append(said[c.Item], sentence)
	}
	for item, sentences := range said {
		if len(sentences) > 0 {
			n := d.when.nodes[item]
			l.warn(n, part{0, len(n.text)}, codeClockChange, "the clocks of %s change: %s; take hours that no change touches, "+
				"single values for hour and minute (then dst decides), or timezone: UTC", d.when.timezone, strings.Join(sentences, ", and "))
		}
	}
}

const (
	busyJobs  = 5 // so many jobs in one minute are no news
	busyNamed = 3 // so many of them are named
	oftenADay = 24
)

// busyMinutes warns of minutes of the coming week in which many jobs are due at once. Jobs that run every hour meet others
// whatever they do, and those with a jitter are spread already.
func (l *linter) busyMinutes(drafts []*jobDraft, all []*jobs.Job) {
	due := map[int64][]int{} // indices of jobs, by the minute
	for i, j := range all {
		if j.Schedule == nil || !j.Enabled || j.Jitter > 0 {
			continue
		}
		if _, often := j.Schedule.Between(l.now, l.now.Add(day), oftenADay-1); often {
			continue
		}
		at, _ := j.Schedule.Between(l.now, l.now.Add(week), 7*oftenADay)
		for _, instant := range at {
			if m := instant.Unix() / 60; !slices.Contains(due[m], i) {
				due[m] = append(due[m], i)
			}
		}
	}
	for _, m := range busiest(due) {
		l.busyMinute(time.Unix(m*60, 0), due[m], drafts, all)
	}
}

// busiest picks for each time of day the minute with the most jobs, the first of several.
func busiest(due map[int64][]int) []int64 {
	const minutes = 24 * 60
	best := map[int64]int64{}
	for m, indices := range due {
		if len(indices) <= busyJobs {
			continue
		}
		before, known := best[m%minutes]
		more := cmp.Or(cmp.Compare(len(indices), len(due[before])), cmp.Compare(before, m))
		if !known || more > 0 {
			best[m%minutes] = m
		}
	}
	var list []int64
	for _, m := range best {
		list = append(list, m)
	}
	slices.Sort(list)
	return list
}

func (l *linter) busyMinute(at time.Time, indices []int, drafts []*jobDraft, all []*jobs.Job) {
	first := slices.MinFunc(indices, func(a, b int) int {
		x, y := drafts[a].key, drafts[b].key
		return cmp.Or(cmp.Compare(l.reader.sourceOf(x).name, l.reader.sourceOf(y).name),
			cmp.Compare(x.at.line, y.at.line), cmp.Compare(x.at.column, y.at.column))
	})
	var names []string
	for _, i := range indices[:min(busyNamed, len(indices))] {
		names = append(names, fmt.Sprintf("%q", abbreviate(all[i].Name)))
	}
	n := drafts[first].when.nodes[0]
	l.warn(n, part{0, len(n.text)}, codeBusyMinute, "%d jobs are due in one minute, next at %s: %s and %d more; "+
		"spread them by H in place of the minute, by other minutes, or by jitter",
		len(indices), at.In(all[first].Schedule.Location()).Format("2006-01-02 15:04 -07:00"), strings.Join(names, ", "), len(indices)-len(names))
}
