package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// That a run has begun is not told after its end: it is cut before that may go out, and not begun when it comes too late.
func TestABeginningDoesNotComeAfterTheEnd(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		job := &jobs.Job{Name: "j", Ping: "https://ping.example/x"}
		p := NewPinger(func(string) *jobs.Job { return job }, s.log)
		var mu sync.Mutex
		told := map[int64]string{}
		p.send = func(ctx context.Context, _ *jobs.Job, b began) error {
			started := time.Since(s.began)
			err := errors.New("no answer")
			select {
			case <-time.After(tryTimeout):
			case <-ctx.Done():
				err = ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			told[b.run] += fmt.Sprintf("%s to %s;", started, time.Since(s.began))
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); p.Run(ctx) }()
		runs := make([]*jobs.Run, pingWorkers+1)
		for i := range runs {
			runs[i] = &jobs.Run{ID: int64(i + 1), Job: "j", Notify: true}
			p.Claimed(runs[i])
		}
		time.Sleep(2 * time.Second)
		for _, i := range []int{0, pingWorkers} { // one that is being told, and one that waits
			p.Ended(&scheduler.Ending{Run: runs[i], Written: true})
		}
		p.Ended(&scheduler.Ending{Run: &jobs.Run{ID: 99}}) // one that never ran here
		time.Sleep(time.Minute)
		cancel()
		<-over
		assert.Equal(t, "0s to 2.5s;", told[1])
		assert.Less(t, startGrace, scheduler.PingWait)
		assert.Equal(t, "0s to 10s;11s to 21s;", told[2])
		assert.NotContains(t, told, int64(pingWorkers+1))
		assert.Empty(t, p.going)
	})
}

// A run does not wait for its ping, nor for those of other runs; what is too much is dropped, with a line.
func TestABeginningIsNeverWaitedFor(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		job := &jobs.Job{Name: "j", Ping: "https://ping.example/" + token}
		p := NewPinger(func(string) *jobs.Job { return job }, s.log)
		var mu sync.Mutex
		tries := 0
		p.send = func(ctx context.Context, _ *jobs.Job, _ began) error {
			mu.Lock()
			tries++
			mu.Unlock()
			select {
			case <-time.After(tryTimeout):
				return errors.New("no answer within 10s")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); p.Run(ctx) }()
		asked := time.Now()
		for i := range 200 {
			p.Claimed(&jobs.Run{ID: int64(i), Job: "j", Notify: true})
			p.Claimed(&jobs.Run{ID: int64(i), Job: "other"})
		}
		assert.Zero(t, time.Since(asked))
		dropped := s.logs.FilterMessage("the ping that a run begins was dropped: too many wait").Len()
		assert.GreaterOrEqual(t, dropped, 200-pingQueue-pingWorkers)
		time.Sleep(time.Hour)
		mu.Lock()
		assert.Equal(t, 2*(200-dropped), tries, "twice, and no third time")
		mu.Unlock()
		assert.Equal(t, 200-dropped, s.logs.FilterMessage("the ping that a run begins could not be sent").Len())
		for _, line := range s.logs.All() {
			assert.NotContains(t, fmt.Sprint(line.Message, line.ContextMap()), token)
		}
		cancel()
		<-over
	})
}
