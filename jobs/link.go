package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The codes of a LinkError.
const (
	CodeAfter      = "after"       // what the entry names, or what stands beside the list
	CodeAfterCycle = "after-cycle" // jobs that wait for each other
	CodeAfterNever = "after-never" // several jobs whose runs never meet
)

// LinkError says what is wrong with how one job comes after others, and the way out.
type LinkError struct {
	Job     string // whose After it is
	Item    int    // which entry of After is at fault, from 0; -1 when the list as a whole is
	Code    string // one of the Code constants
	Message string // a sentence without a position
}

func (e *LinkError) Error() string { return fmt.Sprintf("job %s: %s", quote(e.Job), e.Message) }

// LinkErrors are all the faults, in the order of the jobs.
type LinkErrors []*LinkError

func (e LinkErrors) Error() string {
	texts := make([]string, len(e))
	for i := range e {
		texts[i] = e[i].Error()
	}
	return strings.Join(texts, "; ")
}

// Link ties the jobs of one set together: it checks what comes after what, and sets Followed. It must be called before the
// jobs are used, once for the whole set. Its error is always a LinkErrors, and then nothing is followed.
//
// A job with several upstream jobs runs once for all of them, so their runs must meet: by the date in their resources,
// when they have one of the same form, and otherwise by their instants, when those are the same.
func Link(list []*Job) error {
	l := linker{byName: make(map[string]*Job, len(list)), rhythms: map[*Job]string{}}
	place := make(map[string]int, len(list))
	for i, j := range list {
		j.Followed = false
		l.byName[j.Name], place[j.Name] = j, i
	}
	for _, j := range list {
		l.checkEntries(j)
	}
	l.checkCycles(list)
	if len(l.faults) == 0 { // else the way up may have no end
		for _, j := range list {
			l.checkMeeting(j)
		}
	}
	if len(l.faults) > 0 {
		slices.SortStableFunc(l.faults, func(a, b *LinkError) int { return cmp.Compare(place[a.Job], place[b.Job]) })
		return l.faults
	}
	for _, j := range list {
		for i := range j.After {
			l.upstream(j, i).Followed = true
		}
	}
	return nil
}

// linker checks one set.
type linker struct {
	byName  map[string]*Job
	rhythms map[*Job]string // that are known: a chain may be long, and many may ask
	faults  LinkErrors
}

// upstream is the job that entry i of j.After names; nil when there is none.
func (l *linker) upstream(j *Job, i int) *Job { return l.byName[j.After[i].Job] }

// refuse reports a fault of entry i of j.After, or with -1 of the list.
func (l *linker) refuse(j *Job, i int, code, format string, args ...any) {
	l.faults = append(l.faults, &LinkError{Job: j.Name, Item: i, Code: code, Message: fmt.Sprintf(format, args...)})
}

// checkEntries looks at each entry by itself.
func (l *linker) checkEntries(j *Job) {
	if len(j.After) > 0 && j.Schedule != nil {
		l.refuse(j, -1, CodeAfter, "a job that comes after others has no schedule of its own; remove one of the two")
	}
	if j.HookOf != "" && (len(j.After) != 1 || j.After[0].Job != j.HookOf) {
		l.refuse(j, -1, CodeAfter, "a hook comes after the job whose hook it is, and no other")
	}
	for i := range j.After {
		a := &j.After[i]
		if a.On == "" {
			a.On = AfterSuccess
		}
		switch {
		case !slices.Contains([]AfterOn{AfterSuccess, AfterFailure, AfterAlways, AfterAbort}, a.On):
			l.refuse(j, i, CodeAfter, "on %s is not one of success, failure, always", quote(string(a.On)))
		case a.Job == j.Name:
			l.refuse(j, i, CodeAfterCycle, "a job cannot come after itself")
		case l.upstream(j, i) == nil:
			l.refuse(j, i, CodeAfter, "there is no job %s for it to come after", quote(a.Job))
		case l.upstream(j, i).HookOf != "":
			l.refuse(j, i, CodeAfter, "%s is a hook, and nothing comes after a hook; come after %s itself",
				quote(a.Job), quote(l.upstream(j, i).HookOf))
		case a.On == AfterAbort && j.HookOf == "":
			l.refuse(j, i, CodeAfter, "on: abort is for hooks; say on: always, or give %s a hook on_abort", quote(a.Job))
		case slices.ContainsFunc(j.After[:i], func(b After) bool { return b.Job == a.Job }):
			l.refuse(j, i, CodeAfter, "it comes after %s twice; one entry is enough, on: always if need be", quote(a.Job))
		}
	}
}

// checkCycles reports each cycle once, at its first job.
func (l *linker) checkCycles(list []*Job) {
	done := make(map[*Job]bool, len(list))
	for _, j := range list {
		l.walk(j, nil, done)
	}
}

// walk goes up from j; below is how it came there, from the first job to j's own follower.
func (l *linker) walk(j *Job, below []*Job, done map[*Job]bool) {
	if start := slices.Index(below, j); start >= 0 {
		l.cycle(below[start:])
		return
	}
	if done[j] {
		return
	}
	below = append(below, j)
	for _, a := range j.After {
		if up := l.byName[a.Job]; up != nil && up != j { // else it was reported
			l.walk(up, below, done)
		}
	}
	done[j] = true
}

// cycle reports jobs of which each comes after the next one, and the last one after the first.
func (l *linker) cycle(jobs []*Job) {
	const most = 12 // names in a message
	first := jobs[0]
	names := []string{brief(first.Name)}
	for i, j := range slices.Backward(jobs) {
		if len(names) == most && i > 0 {
			names = append(names, fmt.Sprintf("(%d more)", i), brief(first.Name))
			break
		}
		names = append(names, brief(j.Name))
	}
	up := jobs[1%len(jobs)].Name
	item := slices.IndexFunc(first.After, func(a After) bool { return a.Job == up })
	l.refuse(first, item, CodeAfterCycle, "it comes after itself: %s", strings.Join(names, " -> "))
}

// checkMeeting looks whether the runs that a job waits for can have the same period or the same occurrence.
func (l *linker) checkMeeting(j *Job) {
	if len(j.After) < 2 {
		return
	}
	first := l.upstream(j, 0)
	for i := range j.After {
		if up := l.upstream(j, i); l.rhythm(up) == "" {
			l.refuse(j, i, CodeAfterNever, "it waits for several jobs, and %s runs only by hand; give that job a schedule", quote(up.Name))
		} else if why := l.apart(first, up); why != "" && l.rhythm(first) != "" { // else that is reported
			l.refuse(j, i, CodeAfterNever, "the runs it waits for never meet: %s", why)
		}
	}
}

// apart says why runs of the two never meet; "" when they do.
func (l *linker) apart(a, b *Job) string {
	one, other := quote(a.Name), quote(b.Name)
	switch form, second := a.Resource.PeriodForm(), b.Resource.PeriodForm(); {
	case form == "" && second == "" && l.rhythm(a) != l.rhythm(b):
		return fmt.Sprintf("%s and %s have different schedules; give the resources of both a date of the same form, like YYYY-MM-DD",
			one, other)
	case form == second:
		return ""
	case form == "":
		one, other = other, one
		fallthrough
	case second == "":
		return fmt.Sprintf("the resource of %s has a date, that of %s has none; give both a date of the same form", one, other)
	default:
		return fmt.Sprintf("the date in the resource of %s is %s, that of %s is %s; give both the same form", one, form, other, second)
	}
}

// rhythm is equal for jobs with the same occurrences. It is empty for a job that only runs by hand.
func (l *linker) rhythm(j *Job) string {
	known, ok := l.rhythms[j]
	if !ok {
		known = l.findRhythm(j)
		l.rhythms[j] = known
	}
	return known
}

func (l *linker) findRhythm(j *Job) string {
	if j.Schedule != nil {
		return j.Schedule.Hash()
	}
	if len(j.After) == 0 {
		return ""
	}
	first := l.upstream(j, 0)
	if form := first.Resource.PeriodForm(); len(j.After) > 1 && form != "" {
		return form
	}
	return l.rhythm(first)
}
