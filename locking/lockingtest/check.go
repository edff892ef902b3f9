package lockingtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

func isUnknown(err error) bool { return errors.Is(err, locking.ErrUnknown) }

func isFact(err error) bool {
	return errors.Is(err, locking.ErrNotFound) || errors.Is(err, locking.ErrStaleToken) ||
		errors.Is(err, locking.ErrInvalid)
}

// Check returns what in the history breaks a promise, one sentence each:
//
//   - P1: no grant begins before the one before it ended, and nothing is renewed, extended or released for somebody who
//     does not hold it at that time.
//   - P2: the tokens of a resource grow with time, and no grant has the token of another.
//   - A refusal names a live holder other than the caller.
//
// The order of calls is not used, only the database's times and the tokens. Grants whose owner had a call of unknown
// outcome are only held to P2: what that call did is not known.
func (h *History) Check() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	byResource := make(map[string][]event)
	for _, e := range h.events {
		byResource[e.asked.Resource] = append(byResource[e.asked.Resource], e)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(byResource)) {
		c := checker{resource: name, terms: make(map[int64]*term), unsure: make(map[string]bool)}
		out = append(out, c.check(byResource[name])...)
	}
	return out
}

// term is everything that is known about one grant.
type term struct {
	token  int64
	owner  string
	grants []event
	events []event // extended, renewed, released and forced ones

	end      time.Time // of the exclusive right, from what the events say
	released bool
	forced   time.Time // zero while it was not
}

// story is what happened to a grant, for a message.
func (t *term) story() string {
	var b strings.Builder
	for _, e := range slices.Concat(t.grants, t.events) {
		fmt.Fprintf(&b, "  token %d: %s at %s, acquired %s, expires %s, seen at %s\n", t.token, e.kind, e.at().Format(time.StampMicro),
			e.row.AcquiredAt.Format(time.StampMicro), e.row.ExpiresAt.Format(time.StampMicro), e.row.Now.Format(time.StampMicro))
	}
	return b.String()
}

type checker struct {
	resource string
	terms    map[int64]*term
	unsure   map[string]bool // owners with a call of unknown outcome
	problems []string
}

func (c *checker) failf(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf("%q: "+format, append([]any{c.resource}, args...)...))
}

func (c *checker) check(events []event) []string {
	for i := range events {
		c.sort(&events[i])
	}
	var before *term
	for _, token := range slices.Sorted(maps.Keys(c.terms)) {
		t := c.terms[token]
		c.replay(t)
		if before != nil {
			c.follow(before, t)
		}
		before = t
	}
	return c.problems
}

// sort puts an event to its grant, and checks what it says by itself.
func (c *checker) sort(e *event) {
	switch e.kind {
	case unknown:
		c.unsure[e.asked.Owner] = true
		return
	case refused:
		r := e.row
		if r.Owner != "" && r.FreeFor(locking.AcquireRequest{Owner: e.asked.Owner, Principal: e.asked.Principal, Grace: e.grace}) {
			c.failf("%q was refused because of %q, whose lock was not in the way", e.asked.Owner, r.Owner)
		}
		return
	case granted, extended, renewed, released, forced:
	}
	if e.row.Owner != e.asked.Owner || e.row.Principal != e.asked.Principal || (e.asked.FencingToken != 0 && e.row.FencingToken != e.asked.FencingToken) {
		c.failf("%s for %q with token %d, and the row is of %q with token %d",
			e.kind, e.asked.Owner, e.asked.FencingToken, e.row.Owner, e.row.FencingToken)
		return
	}
	t := c.terms[e.row.FencingToken]
	if t == nil {
		t = &term{token: e.row.FencingToken, owner: e.row.Owner}
		c.terms[t.token] = t
	}
	if t.owner != e.row.Owner {
		c.failf("token %d is of %q and of %q", t.token, t.owner, e.row.Owner)
		return
	}
	if e.kind == granted {
		t.grants = append(t.grants, *e)
		return
	}
	t.events = append(t.events, *e)
}

// replay follows one grant through its time.
func (c *checker) replay(t *term) {
	switch {
	case len(t.grants) > 1:
		c.failf("token %d was granted %d times", t.token, len(t.grants))
	case len(t.grants) == 0:
		if !c.unsure[t.owner] {
			c.failf("%s with token %d, which nobody was granted", t.events[0].kind, t.token)
		}
		return
	}
	t.end = t.grants[0].row.ExpiresAt
	slices.SortStableFunc(t.events, func(a, b event) int {
		return cmp.Or(a.at().Compare(b.at()), cmp.Compare(rank(a), rank(b)), a.row.ExpiresAt.Compare(b.row.ExpiresAt))
	})
	for i := range t.events {
		c.step(t, &t.events[i])
	}
}

// rank orders events of one instant (SQLite's are a millisecond long): a release was the last of them.
func rank(e event) int {
	if e.kind == released {
		return 1
	}
	return 0
}

// step applies one event; what happens at the very instant of an end is not judged.
func (c *checker) step(t *term, e *event) {
	if e.at().After(t.end) && !c.unsure[t.owner] {
		c.failf("%s for %q with token %d at %s, after its end at %s",
			e.kind, t.owner, t.token, e.at().Format(time.StampMicro), t.end.Format(time.StampMicro))
	}
	if !t.forced.IsZero() && e.at().After(t.forced) && (e.kind == renewed || e.kind == extended) {
		c.failf("%s for %q with token %d after it was forced", e.kind, t.owner, t.token)
	}
	switch e.kind {
	case extended, renewed:
		t.end = e.row.ExpiresAt
	case released:
		t.end, t.released = e.at(), true
	case forced:
		t.forced = e.at()
	case granted, refused, unknown:
	}
}

// follow checks a grant against the one before it.
func (c *checker) follow(before, t *term) {
	if len(before.grants) == 0 || len(t.grants) == 0 {
		return
	}
	start := t.grants[0].at()
	if start.Before(before.grants[0].at()) {
		c.failf("token %d was granted after the higher token %d", before.token, t.token)
	}
	end := before.end
	if t.owner != before.owner && !before.released {
		end = end.Add(t.grants[0].grace)
	}
	if start.Before(end) && !c.unsure[before.owner] {
		c.failf("%q got token %d at %s, while %q had token %d until %s\n%s\n%s", t.owner, t.token,
			start.Format(time.StampMicro), before.owner, before.token, end.Format(time.StampMicro), before.story(), t.story())
	}
}
