package jobs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/jobs"
)

// The trace of the run goes before one that the job's own environment has; without a trace there is nothing.
func TestTraceParentInTheEnvironment(t *testing.T) {
	t.Parallel()
	getenv := func(string) string { return "" }
	a := jobs.Attempt{Job: &jobs.Job{Name: "x"}}
	for _, v := range a.Environ(getenv) {
		assert.NotContains(t, v, "TRACEPARENT")
	}
	a.Job.Env, a.TraceParent = map[string]string{"TRACEPARENT": "own"}, "00-1-2-01"
	assert.Contains(t, a.Environ(getenv), "TRACEPARENT=00-1-2-01")
	assert.NotContains(t, a.Environ(getenv), "TRACEPARENT=own")
}
