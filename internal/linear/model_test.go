package linear

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// sequence is a history of calls one after another, a second apart, in which unknown outcomes may last.
type sequence struct {
	h   *History
	now time.Time
}

func newSequence() *sequence {
	h := newHistory([]string{"r"})
	return &sequence{h: h, now: h.start}
}

func (s *sequence) call(c call, a answer) *sequence {
	c.resource = "r"
	s.now = s.now.Add(time.Second)
	s.h.note(0, c, a, s.now, s.now.Add(time.Millisecond))
	return s
}

// quiet ends a segment whose reading was a, as a drive does it.
func (s *sequence) quiet(a answer) *sequence {
	s.now = s.now.Add(time.Second)
	s.h.quiet(s.now)
	s.call(call{verb: get}, a)
	s.h.settle(map[string]answer{"r": a})
	return s
}

// shown is an answer with the lock of an owner, which expires a number of seconds after the start.
func (s *sequence) shown(owner string, token int64, seconds int) answer {
	return answer{verdict: done, owner: owner, token: token, expiry: s.h.start.Add(time.Duration(seconds) * time.Second).UnixNano()}
}

func TestUnknownOutcomesAreSettledByReading(t *testing.T) {
	t.Parallel()
	ask := call{verb: acquire, owner: "A", ttl: 100 * time.Second}
	nothing, free := answer{verdict: unknown}, answer{verdict: notFound}
	for name, c := range map[string]struct {
		history func(s *sequence)
		ok      bool
	}{
		"a lost answer of a grant": {func(s *sequence) {
			s.call(ask, nothing).call(call{verb: get}, s.shown("A", 7, 101))
		}, true},
		"a request that never arrived": {func(s *sequence) {
			s.call(ask, nothing).call(call{verb: get}, free).quiet(free)
		}, true},
		"a request that arrived late": {func(s *sequence) {
			s.call(ask, nothing).call(call{verb: get}, free).quiet(s.shown("A", 7, 103))
		}, true},
		"a request that arrived after the quiet moment": {func(s *sequence) {
			s.call(ask, nothing).quiet(free).call(call{verb: get}, s.shown("A", 7, 104))
		}, false},
		"an expiry that no moment explains": {func(s *sequence) {
			s.call(ask, nothing).quiet(s.shown("A", 7, 150))
		}, false},
		"a grant of another owner": {func(s *sequence) {
			s.call(ask, nothing).quiet(s.shown("B", 7, 101))
		}, false},
		"a token that is not new": {func(s *sequence) {
			s.call(ask, s.shown("A", 7, 101)).call(call{verb: release, owner: "A"}, answer{verdict: done})
			s.call(call{verb: acquire, owner: "B", ttl: 100 * time.Second}, nothing).quiet(s.shown("B", 7, 103))
		}, false},
		"a renewal that was served": {func(s *sequence) {
			s.call(ask, s.shown("A", 7, 101)).call(call{verb: renew, owner: "A", token: 7, ttl: 100 * time.Second}, nothing)
			s.quiet(s.shown("A", 7, 102))
		}, true},
		"a renewal of an old token that was served": {func(s *sequence) {
			s.call(ask, s.shown("A", 7, 101)).call(call{verb: renew, owner: "A", token: 6, ttl: 100 * time.Second}, nothing)
			s.quiet(s.shown("A", 7, 102))
		}, false},
		"a release that was not": {func(s *sequence) {
			s.call(ask, s.shown("A", 7, 101)).call(call{verb: release, owner: "A"}, nothing).quiet(s.shown("A", 7, 101))
		}, true},
		"a release that was": {func(s *sequence) {
			s.call(ask, s.shown("A", 7, 101)).call(call{verb: release, owner: "A"}, nothing).quiet(free)
		}, true},
		"a release of a stranger that was": {func(s *sequence) {
			s.call(ask, s.shown("A", 7, 101)).call(call{verb: release, owner: "B"}, nothing).quiet(free)
		}, false},
		"a force that was": {func(s *sequence) {
			s.call(ask, s.shown("A", 7, 101)).call(call{verb: force, token: 7}, nothing).quiet(s.shown("A", 7, 101))
			s.call(call{verb: renew, owner: "A", ttl: time.Second}, answer{verdict: lost})
		}, true},
		"a loss for no reason": {func(s *sequence) {
			s.call(ask, s.shown("A", 7, 101)).quiet(s.shown("A", 7, 101))
			s.call(call{verb: renew, owner: "A", ttl: time.Second}, answer{verdict: lost})
		}, false},
		"a loss at the end": {func(s *sequence) {
			s.call(call{verb: acquire, owner: "A", ttl: time.Second}, s.shown("A", 7, 2))
			s.call(call{verb: renew, owner: "A", ttl: time.Second}, answer{verdict: lost})
		}, true},
		"a token that falls after a quiet moment": {func(s *sequence) {
			s.call(ask, s.shown("A", 7, 101)).call(call{verb: release, owner: "A"}, answer{verdict: done}).quiet(free)
			s.call(ask, s.shown("A", 6, 104))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSequence()
			c.history(s)
			problems := s.h.Check(time.Minute)
			assert.Equal(t, c.ok, len(problems) == 0, "%v", problems)
		})
	}
}

// "Not decided" is a problem.
func TestAnUndecidedSearchIsAProblem(t *testing.T) {
	t.Parallel()
	s := newSequence()
	for range 5000 {
		s.call(call{verb: get}, answer{verdict: notFound})
	}
	problems := s.h.Check(time.Nanosecond)
	assert.Len(t, problems, 1)
	assert.Contains(t, problems[0], "not decided")
}
