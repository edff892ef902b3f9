package scheduler

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestHowAProcessEndsDecidesTheOutcome(t *testing.T) {
	t.Parallel()
	replaced := &jobs.Run{CancelReason: jobs.ReasonReplaced, CancelDetail: []byte(`{"replaced_by": 7}`)}
	tests := map[string]struct {
		result  jobs.Result
		lost    bool
		drained bool
		outcome jobs.Outcome
		reason  jobs.Reason
		again   bool
		codes   jobs.ExitCodes
		asked   *jobs.Run
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
		"a code that is success":      {result: jobs.Result{Cause: jobs.CauseExited, ExitCode: 3}, codes: jobs.ExitCodes{Success: []int{0, 3}}, outcome: jobs.OutcomeSucceeded},
		"0 that is not":               {result: jobs.Result{Cause: jobs.CauseExited}, codes: jobs.ExitCodes{Success: []int{3}}, outcome: jobs.OutcomeFailed, reason: jobs.ReasonExit},
		"a code that is skip":         {result: jobs.Result{Cause: jobs.CauseExited, ExitCode: 75}, codes: jobs.ExitCodes{Skip: []int{75}}, outcome: jobs.OutcomeSkipped, reason: jobs.ReasonExit},
		"0 beside a skip":             {result: jobs.Result{Cause: jobs.CauseExited}, codes: jobs.ExitCodes{Skip: []int{75}}, outcome: jobs.OutcomeSucceeded},
		"work that is no process":     {result: jobs.Result{Cause: jobs.CauseExited, ExitCode: 1, Reason: jobs.ReasonPanic}, codes: jobs.ExitCodes{Success: []int{1}}, outcome: jobs.OutcomeFailed, reason: jobs.ReasonPanic},
		"a signal is no code":         {result: jobs.Result{Cause: jobs.CauseExited, Signal: "SIGSEGV"}, codes: jobs.ExitCodes{Success: []int{0}, Skip: []int{1}}, outcome: jobs.OutcomeFailed, reason: jobs.ReasonSignal},
		"stopped is no code":          {result: jobs.Result{Cause: jobs.CauseTimeout, ExitCode: 75}, codes: jobs.ExitCodes{Skip: []int{75}}, outcome: jobs.OutcomeTimedOut, reason: jobs.ReasonTimeout},
		"replaced":                    {result: jobs.Result{Cause: jobs.CauseStopped, Signal: "SIGTERM"}, asked: replaced, outcome: jobs.OutcomeCancelled, reason: jobs.ReasonReplaced},
		"replaced while drained":      {result: jobs.Result{Cause: jobs.CauseStopped, Signal: "SIGTERM"}, asked: replaced, drained: true, outcome: jobs.OutcomeCancelled, reason: jobs.ReasonReplaced},
		"lost while replaced":         {result: jobs.Result{Cause: jobs.CauseStopped, Signal: "SIGTERM"}, asked: replaced, lost: true, outcome: jobs.OutcomeLost, reason: jobs.ReasonLeaseLost, again: true},
		"replaced, but done":          {result: jobs.Result{Cause: jobs.CauseExited}, asked: replaced, outcome: jobs.OutcomeSucceeded},
		"code 0 although being asked": {result: jobs.Result{Cause: jobs.CauseExited}, drained: true, outcome: jobs.OutcomeSucceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := conclude(processEnd{result: tt.result, lost: tt.lost, drained: tt.drained, asked: tt.asked}, tt.codes)
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
