package configs

import (
	"fmt"

	"github.com/cronlatch/cronlatch/jobs"
)

// maxValues bounds how many values are read, aliases counted each time: nine lines of aliases can stand for a billion.
const maxValues = 1_000_000

// reader carries what reading values needs, and collects the problems.
type reader struct {
	findings

	vars      variables
	values    int
	calendars map[string]*jobs.Calendar // by name; nil for a faulty one
	databases map[string]Database       // of sql jobs, by name
	plain     []*node                   // secrets that the file itself holds
	channels  map[string]bool           // their names, the faulty ones included; nil when there is no such key
}

// refuse reports a problem with a whole node.
func (r *reader) refuse(n *node, code, format string, args ...any) {
	r.report(n, n.at, code, fmt.Sprintf(format, args...))
}

// part is some bytes of a scalar's text; the zero value is all of it.
type part struct {
	offset, length int
}

// refusePart reports a problem with a part of a scalar.
func (r *reader) refusePart(n *node, p part, code, message string) {
	at := n.at
	if !n.block && !n.loose {
		at = r.sourceOf(n).within(n.at, n.text, p)
	}
	r.report(n, at, code, message)
}

func (r *reader) report(n *node, at place, code, message string) {
	if n.from != "" {
		r.add(Problem{File: n.from, Message: oneLine(message), Code: code})
		return
	}
	r.add(r.sourceOf(n).problem(at, code, message))
}

// sourceOf is the file that a node is in.
func (r *reader) sourceOf(n *node) *source {
	if n.file != nil {
		return n.file
	}
	return r.source
}

// spend counts a value; false when the file stands for too many, which then is its only problem.
func (r *reader) spend() bool {
	if r.values++; r.values <= maxValues {
		return true
	}
	r.only(r.source.problem(place{1, 1, 1}, codeTooLarge, fmt.Sprintf("the file stands for more than %d values; an alias repeats a large part too often", maxValues)))
	return false
}

// scalar is the node with its variables replaced; nil when that is not possible, which is reported. The text of a
// replaced node is what the variables hold: it must not get into a message.
func (r *reader) scalar(n *node) *node {
	if n.kind != kindText || n.from != "" {
		return n
	}
	text, replaced, problem := r.vars.replace(n.text)
	if problem != nil {
		r.refusePart(n, problem.part, problem.code, problem.message)
		return nil
	}
	if !replaced {
		if text == n.text {
			return n
		}
		out := *n // only $$ became $
		out.text = text
		return &out
	}
	out := *n
	out.text, out.loose = text, true
	return &out
}

// shown is how a message may show a scalar: as it is written in the file.
func shown(written *node) string { return fmt.Sprintf("%q", abbreviate(written.text)) }
