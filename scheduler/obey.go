package scheduler

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// obeyEvery is how often a replica that runs something looks for requests to end it: whoever cancels a run waits for that, and
// for the job's kill_after at most. The statement reads a small index that is empty most of the time.
const obeyEvery = 250 * time.Millisecond

// startObeying looks for requests to end a run; the returned function ends it. It is apart from the loop, which has more to do
// in one round, and from the drain, which a database that does not answer must not hold up.
func (s *Scheduler) startObeying(ctx context.Context) (stop func()) {
	obeying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(obeyEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-obeying.Done():
				return
			}
			if s.active.count() == 0 {
				continue
			}
			if err := s.endAsked(obeying); err != nil && obeying.Err() == nil {
				s.o.Log.Debug("requests to end a run could not be read", zap.Error(err))
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}
