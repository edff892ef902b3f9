package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/internal/fleet/record"
)

// span is how long any process of one grant was seen alive.
type span struct {
	token       int64
	first, last record.Event
}

// spans are the spans of each resource, by their first event.
func spans(events []record.Event) map[string][]span {
	type grant struct {
		resource string
		token    int64
	}
	all := map[grant]span{}
	for _, e := range events {
		g := grant{e.Resource, e.Token}
		s, ok := all[g]
		if !ok {
			s = span{e.Token, e, e}
		}
		if e.Boot < s.first.Boot {
			s.first = e
		}
		if e.Boot > s.last.Boot {
			s.last = e
		}
		all[g] = s
	}
	by := map[string][]span{}
	for g, s := range all {
		by[g.resource] = append(by[g.resource], s)
	}
	for _, list := range by {
		slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.first.Boot, b.first.Boot) })
	}
	return by
}

// Exclusive checks P1, P3 and P4 in what the jobs recorded: the last sign of life of any process of one grant comes
// before the first of the next grant of that resource, tokens grow with time, and no token was given to two runs.
func Exclusive(events []record.Event) error {
	var p problems
	for resource, list := range spans(events) {
		var latest span // the one that lived longest so far
		for i, s := range list {
			if i > 0 && s.first.Boot <= latest.last.Boot {
				p.add("%s: token %d (run %d) started %s before the last sign of life of token %d (run %d, pid %d, %s)", resource,
					s.token, s.first.Run, latest.last.Boot-s.first.Boot, latest.token, latest.last.Run, latest.last.PID, latest.last.Role)
			}
			if i > 0 && s.token <= list[i-1].token {
				p.add("%s: token %d (run %d) came after token %d", resource, s.token, s.first.Run, list[i-1].token)
			}
			if i == 0 || s.last.Boot > latest.last.Boot {
				latest = s
			}
		}
	}
	type grant struct {
		resource string
		token    int64
	}
	runs := map[grant]int64{}
	for _, e := range events {
		g := grant{e.Resource, e.Token}
		if run, ok := runs[g]; ok && run != e.Run {
			p.add("%s: token %d was given to run %d and to run %d", e.Resource, e.Token, run, e.Run)
		}
		runs[g] = e.Run
	}
	return p.err()
}

// DeadBy checks that no process of the chosen runs showed life after the instant on the boot clock.
func DeadBy(events []record.Event, deadline time.Duration, chosen func(run int64) bool) error {
	var p problems
	for _, e := range events {
		if chosen(e.Run) && e.Boot > deadline {
			p.add("run %d (%s, token %d, pid %d, %s) showed life %s after its deadline", e.Run, e.Job, e.Token, e.PID, e.Role, e.Boot-deadline)
		}
	}
	return p.err()
}

// Register checks that a guarded register never accepted a token smaller than one it had accepted before, and that it
// refused nothing that was not stale.
func Register(writes []record.Write) error {
	var p problems
	var newest int64
	for i, w := range writes {
		switch {
		case w.Accepted && w.Token < newest:
			p.add("write %d: token %d (run %d) was accepted after token %d", i, w.Token, w.Run, newest)
		case !w.Accepted && w.Token >= newest:
			p.add("write %d: token %d (run %d) was refused, newest is %d", i, w.Token, w.Run, newest)
		case w.Accepted:
			newest = w.Token
		}
	}
	return p.err()
}
