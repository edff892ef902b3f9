package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bootFrom is a boot clock inside a synctest bubble.
func bootFrom() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// waits is work that goes on until its context ends.
func waits(ctx context.Context, _ *Task) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestHowATaskEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		work    func(context.Context, *Task) error
		timeout time.Duration
		during  func(*Task, context.CancelCauseFunc)
		want    Result
		after   time.Duration
		output  string
	}{
		"it returns": {
			work: func(_ context.Context, task *Task) error { _, err := task.Write([]byte("done")); return err },
			want: Result{Cause: CauseExited}, output: "done",
		},
		"an error": {
			work:   func(context.Context, *Task) error { return errors.New("no disk") },
			want:   Result{Cause: CauseExited, ExitCode: 1, Reason: ReasonError},
			output: "no disk\n",
		},
		"an error with a reason": {
			work: func(_ context.Context, task *Task) error {
				_, _ = task.Write([]byte("half"))
				return &WorkError{ReasonSQL, errors.New("refused")}
			},
			want: Result{Cause: CauseExited, ExitCode: 1, Reason: ReasonSQL}, output: "half\nrefused\n",
		},
		"a panic": {
			work: func(context.Context, *Task) error { panic("oh") },
			want: Result{Cause: CauseExited, ExitCode: 1, Reason: ReasonPanic}, output: "panic: oh\n",
		},
		"the goroutine ends": {
			work: func(context.Context, *Task) error { runtime.Goexit(); return nil },
			want: Result{Cause: CauseExited, ExitCode: 1, Reason: ReasonError}, output: errTaskExit.Error() + "\n",
		},
		"the timeout": {work: waits, timeout: 3 * time.Second, want: Result{Cause: CauseTimeout, ExitCode: 1}, after: 3 * time.Second},
		"stopped": {
			work: waits, during: func(task *Task, _ context.CancelCauseFunc) { task.Stop() },
			want: Result{Cause: CauseStopped, ExitCode: 1},
		},
		"the lock's time": {work: waits, want: Result{Cause: CauseDeadline, ExitCode: 1}, after: 20 * time.Second},
		"the lock's time after a renewal": {
			work: waits, during: func(task *Task, _ context.CancelCauseFunc) { task.Extend(25*time.Second, 35*time.Second) },
			want: Result{Cause: CauseDeadline, ExitCode: 1}, after: 25 * time.Second,
		},
		"the lock is lost": {
			work: waits, during: func(_ *Task, lose context.CancelCauseFunc) { lose(errors.New("lost")) },
			want: Result{Cause: CauseDeadline, ExitCode: 1},
		},
		"it finds the lock lost": {
			work: func(context.Context, *Task) error { return fmt.Errorf("storing: %w", ErrLockLost) },
			want: Result{Cause: CauseDeadline, ExitCode: 1}, output: "storing: the run has no longer its lock\n",
		},
		"done although it was stopped": {
			work: func(ctx context.Context, _ *Task) error { <-ctx.Done(); return nil },
			during: func(task *Task, _ context.CancelCauseFunc) {
				task.Stop()
			},
			want: Result{Cause: CauseExited},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				boot := bootFrom()
				ctx, lose := context.WithCancelCause(t.Context())
				defer lose(nil)
				a := &Attempt{Job: &Job{Timeout: test.timeout}, StopAt: 20 * time.Second, Deadline: 30 * time.Second}
				task, err := StartTask(ctx, a, boot, test.work)
				require.NoError(t, err)
				if test.during != nil {
					synctest.Wait()
					test.during(task, lose)
				}
				got := task.Result()
				assert.Equal(t, test.after, boot())
				if test.output != "" {
					assert.Contains(t, string(got.Output.Head), test.output)
				}
				got.Output = Output{}
				assert.Equal(t, test.want, got)
				task.Extend(time.Hour, time.Hour) // a late renewal wakes nothing
				task.Stop()
			})
		})
	}
}

func TestATaskThatComesTooLateIsNotStarted(t *testing.T) {
	t.Parallel()
	never := func(context.Context, *Task) error { panic("it was started") }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"the lock is gone": gone, "its time is over": t.Context()} {
		task, err := StartTask(ctx, &Attempt{Job: &Job{}, StopAt: time.Second}, func() time.Duration { return time.Second }, never)
		var start *StartError
		require.ErrorAs(t, err, &start, name)
		assert.Equal(t, ReasonStaleStart, start.Lost, name)
		assert.Nil(t, task, name)
	}
}

func TestATaskKeepsBothEndsOfItsOutput(t *testing.T) {
	t.Parallel()
	task, err := StartTask(t.Context(), &Attempt{Job: &Job{}, StopAt: time.Hour}, func() time.Duration { return 0 },
		func(_ context.Context, task *Task) error {
			for range 1000 {
				_, _ = task.Write(bytes.Repeat([]byte("x"), 1000))
			}
			return errors.New("the end")
		})
	require.NoError(t, err)
	out := task.Result().Output
	assert.Equal(t, int64(1_000_000+1+len("the end\n")), out.Total)
	assert.Len(t, out.Head, taskHead)
	assert.Len(t, out.Tail, taskTail)
	assert.True(t, bytes.HasSuffix(out.Tail, []byte("x\nthe end\n")))
}
