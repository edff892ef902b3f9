package executor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = time.Minute     // how long a test waits for what must come
	inTime   = 5 * time.Second // a deadline that is reached, when all that comes before it has happened also on a busy machine
)

// attempt is a run of the job with a lock that lives for an hour.
func attempt(job *jobs.Job) jobs.Attempt {
	return jobs.Attempt{
		Job: job, Run: jobs.Run{ID: 7, Job: job.Name, Resource: "res", Owner: "me", FencingToken: 42, ScheduledAt: time.Unix(0, 0)},
		StopAt: boottime.Now() + time.Hour, Deadline: boottime.Now() + time.Hour,
	}
}

func start(t *testing.T, e *Executor, a jobs.Attempt) scheduler.Process {
	t.Helper()
	p, err := e.Start(t.Context(), a)
	require.NoError(t, err)
	return p
}

// ended is the result of a run that ends by itself.
func ended(t *testing.T, p scheduler.Process) jobs.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-p.Done():
	case <-ctx.Done():
		t.Fatal("the run does not end")
	}
	return p.Result()
}
