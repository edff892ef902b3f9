package jobs

import "slices"

// ExitCodes says which codes of a command are not failures. The zero value is the convention: 0 is success.
type ExitCodes struct {
	Success []int // empty is 0 alone
	Skip    []int // the command itself found nothing to do: skipped, reason exit
}

// Outcome is what a command that ended by itself with the code has come to.
func (c ExitCodes) Outcome(code int) Outcome {
	switch {
	case slices.Contains(c.Skip, code):
		return OutcomeSkipped
	case slices.Contains(c.Success, code), len(c.Success) == 0 && code == 0:
		return OutcomeSucceeded
	default:
		return OutcomeFailed
	}
}
