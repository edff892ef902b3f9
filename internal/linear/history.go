package linear

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// History is what was asked and answered, in segments.
type History struct {
	start time.Time // its monotonic clock orders the calls

	mu       sync.Mutex
	segments []segment
	newest   map[string]int64          // the highest token that was seen, by resource
	forced   map[string]map[int64]bool // tokens of grants that may have been forced
}

// segment is the calls between two quiet moments, by resource.
type segment struct {
	begin map[string][]lock
	calls map[string][]porcupine.Operation
}

func newHistory(resources []string) *History {
	h := &History{start: time.Now(), newest: make(map[string]int64), forced: make(map[string]map[int64]bool)}
	begin := make(map[string][]lock)
	for _, name := range resources {
		begin[name] = []lock{{}}
		h.forced[name] = make(map[int64]bool)
	}
	h.begin(begin)
	return h
}

func (h *History) begin(states map[string][]lock) {
	h.segments = append(h.segments, segment{begin: states, calls: make(map[string][]porcupine.Operation)})
}

func (h *History) note(client int, c call, a answer, sent, received time.Time) {
	a.from, a.to = sent.UnixNano()-slack, received.UnixNano()+slack
	a = a.served(c)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest[c.resource] = max(h.newest[c.resource], a.token)
	if c.verb == force && !c.immediate && (a.verdict == done || a.verdict == unknown) {
		h.forced[c.resource][c.token] = true
	}
	s := h.segments[len(h.segments)-1]
	s.calls[c.resource] = append(s.calls[c.resource], porcupine.Operation{
		ClientId: client, Input: c, Output: a,
		Call: sent.Sub(h.start).Nanoseconds(), Return: received.Sub(h.start).Nanoseconds(),
	})
}

// quiet says that nothing is on its way any more: what has no answer took effect until now, or never will.
func (h *History) quiet(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, calls := range h.segments[len(h.segments)-1].calls {
		for i := range calls {
			if a, ok := calls[i].Output.(answer); ok && a.verdict == unknown {
				a.to = now.UnixNano() + slack
				calls[i].Output, calls[i].Return = a, now.Sub(h.start).Nanoseconds()
			}
		}
	}
}

// settle ends the segment with what was read at the quiet moment; the next one starts from there.
func (h *History) settle(read map[string]answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begin := make(map[string][]lock, len(read))
	for name, a := range read {
		l := lock{newest: h.newest[name]}
		if a.verdict == done {
			l.owner, l.token, l.from, l.to = a.owner, a.token, a.expiry, a.expiry
		}
		begin[name] = []lock{l}
		if h.forced[name][l.token] {
			forced := l
			forced.forced = true
			begin[name] = append(begin[name], forced)
		}
	}
	h.begin(begin)
}

// Check returns a sentence for each segment and resource that no sequential lock table explains, and for each for which
// that was not decided within limit.
func (h *History) Check(limit time.Duration) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var problems []string
	for i, s := range h.segments {
		for _, name := range slices.Sorted(maps.Keys(s.calls)) {
			calls := s.calls[name]
			result, info := porcupine.CheckOperationsVerbose(modelOf(s.begin[name]), calls, limit)
			switch result {
			case porcupine.Ok:
			case porcupine.Illegal:
				problems = append(problems, fmt.Sprintf("segment %d: no order explains the %d calls about %s that start with %v:\n%s",
					i, len(calls), name, s.begin[name], around(info, calls)))
			default:
				problems = append(problems, fmt.Sprintf("segment %d: not decided within %s: the %d calls about %s", i, limit, len(calls), name))
			}
		}
	}
	return problems
}

// around shows the end of the longest order that was found, and the calls that it could not take.
func around(info porcupine.LinearizationInfo, calls []porcupine.Operation) string {
	var longest []int
	for _, parts := range info.PartialLinearizations() {
		for _, order := range parts {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	const tail, next = 12, 6
	var b strings.Builder
	in := make(map[int]bool, len(longest))
	for i, at := range longest {
		in[at] = true
		if i >= len(longest)-tail {
			fmt.Fprintln(&b, "  ", describeOperation(calls[at]))
		}
	}
	var left []porcupine.Operation
	for at := range calls {
		if !in[at] {
			left = append(left, calls[at])
		}
	}
	slices.SortFunc(left, func(x, y porcupine.Operation) int { return int(x.Call - y.Call) })
	for _, op := range left[:min(len(left), next)] {
		fmt.Fprintln(&b, "  ?", describeOperation(op))
	}
	return b.String()
}

func describeOperation(op porcupine.Operation) string {
	c, okInput := op.Input.(call)
	a, okOutput := op.Output.(answer)
	if !okInput || !okOutput {
		return "not an operation"
	}
	return fmt.Sprintf("client %d: %s", op.ClientId, describe(c, a))
}
