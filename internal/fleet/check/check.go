// Package check decides whether what happened in a fleet of replicas was right.
//
// Model: each checker is a pure function of a history: what the jobs themselves recorded (package record), the ledger's
// rows, or a log. None of them asks the code under test what should have happened: the calendar is a scan of its own,
// exclusion is read from the jobs' beats, not from the lock table. A checker returns nil or an error with the first few
// violations, each with the facts that prove it.
//
// Guarantees: each checker has mutants in its tests, histories with one fault each that it must catch.
//
// Non-guarantees: a history without violations proves nothing about histories that were not produced; the tests that
// use the checkers say what must have happened at least once (takeovers, lost runs), or they would pass on an idle fleet.
//
// Failure handling: none; bad input is a violation.
//
// How to test: go test ./internal/fleet/check.
package check

import (
	"errors"
	"fmt"
)

// problems collects violations; after the first few they are only counted.
type problems struct {
	found []error
	more  int
}

const shown = 12

func (p *problems) add(format string, args ...any) {
	if len(p.found) == shown {
		p.more++
		return
	}
	p.found = append(p.found, fmt.Errorf(format, args...))
}

func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.found, fmt.Errorf("and %d more", p.more))...)
	}
	return errors.Join(p.found...)
}
