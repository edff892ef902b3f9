package scheduler

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestHowAProcessEndsDecidesTheOutcome(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		result  jobs.Result
		lost    bool
		drained bool
		outcome jobs.Outcome
		reason  jobs.Reason
		again   bool
	}{
		"code 0":                      {result: jobs.Result{Cause: jobs.CauseExited}, outcome: jobs.OutcomeSucceeded},
		"code 3":                      {result: jobs.Result{Cause: jobs.CauseExited, ExitCode: 3}, outcome: jobs.OutcomeFailed, reason: jobs.ReasonExit},
		"a foreign signal":            {result: jobs.Result{Cause: jobs.CauseExited, Signal: "SIGSEGV"}, outcome: jobs.OutcomeFailed, reason: jobs.ReasonSignal},
		"its timeout":                 {result: jobs.Result{Cause: jobs.CauseTimeout, Signal: "SIGTERM"}, outcome: jobs.OutcomeTimedOut, reason: jobs.ReasonTimeout},
		"drained":                     {result: jobs.Result{Cause: jobs.CauseStopped, Signal: "SIGTERM"}, drained: true, outcome: jobs.OutcomeCancelled, reason: jobs.ReasonDrain, again: true},
		"lost":                        {result: jobs.Result{Cause: jobs.CauseStopped, Signal: "SIGTERM"}, lost: true, outcome: jobs.OutcomeLost, reason: jobs.ReasonLeaseLost, again: true},
		"lost while drained":          {result: jobs.Result{Cause: jobs.CauseStopped, Signal: "SIGTERM"}, lost: true, drained: true, outcome: jobs.OutcomeLost, reason: jobs.ReasonLeaseLost, again: true},
		"the lock's deadline":         {result: jobs.Result{Cause: jobs.CauseDeadline, Signal: "SIGKILL"}, outcome: jobs.OutcomeLost, reason: jobs.ReasonLeaseLost, again: true},
		"the supervisor died":         {result: jobs.Result{Cause: jobs.CauseSupervisorGone}, outcome: jobs.OutcomeLost, reason: jobs.ReasonSupervisor, again: true},
		"code 0 although being asked": {result: jobs.Result{Cause: jobs.CauseExited}, drained: true, outcome: jobs.OutcomeSucceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := conclude(tt.result, tt.lost, tt.drained)
			assert.Equal(t, tt.outcome, r.outcome)
			assert.Equal(t, tt.reason, r.reason)
			assert.Equal(t, tt.again, r.again)
		})
	}
}

func TestARunThatCannotStartIsReported(t *testing.T) {
	t.Parallel()
	run := &jobs.Run{ID: 7}
	r := notStarted(run, &jobs.StartError{ExitCode: 127, Message: "no such file"})
	assert.Equal(t, jobs.OutcomeFailed, r.outcome)
	assert.Equal(t, jobs.ReasonStart, r.reason)
	assert.Equal(t, 127, *r.exitCode)
	assert.False(t, r.again)

	for _, reason := range []jobs.Reason{jobs.ReasonStaleStart, jobs.ReasonSupervisor} {
		r = notStarted(run, &jobs.StartError{Lost: reason})
		assert.Equal(t, jobs.OutcomeLost, r.outcome)
		assert.Equal(t, reason, r.reason)
		assert.Nil(t, r.exitCode)
		assert.True(t, r.again, "on_lost decides: the attempt was given away, not tried")
	}

	r = notStarted(run, errors.New("anything else"))
	assert.Equal(t, jobs.OutcomeFailed, r.outcome)
}
