package notify

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

const (
	pingQueue   = 64 // runs whose beginning was not told yet; more are not told
	pingWorkers = 8
)

var _ scheduler.Observer = (*Pinger)(nil)

// startGrace is how long the ping that a run has begun may go on when the run is over. It is shorter than
// scheduler.PingWait: who hears "start" after "success" believes that the run goes on for ever, and gives an alarm.
const startGrace = scheduler.PingWait / 2

// Pinger tells the ping URLs of jobs that a run begins here. No run waits for it: what does not fit into its queue is dropped,
// and so is what was not told when the run is over. The end of a run is told by a Sender.
type Pinger struct {
	job   func(name string) *jobs.Job
	log   *zap.Logger
	queue chan began
	send  func(ctx context.Context, j *jobs.Job, b began) error

	mu    sync.Mutex
	going map[int64]chan struct{} // of the runs that are being told, or are to be: closed when the run is over
}

type began struct {
	job        string
	run        int64
	occurrence string
	over       <-chan struct{} // the run is
}

// NewPinger returns a pinger; job finds a job as it is defined now, nil when there is none.
func NewPinger(job func(name string) *jobs.Job, log *zap.Logger) *Pinger {
	return &Pinger{
		job: job, log: log, queue: make(chan began, pingQueue), going: map[int64]chan struct{}{},
		send: func(ctx context.Context, j *jobs.Job, b began) error {
			return ping(ctx, j, pingStart, b.run, b.occurrence)
		},
	}
}

// Claimed is called before anything of a run is started. It never waits.
func (p *Pinger) Claimed(r *jobs.Run) {
	if !r.Notify { // the mark of every run whose job has a ping
		return
	}
	over := make(chan struct{})
	p.mu.Lock()
	p.going[r.ID] = over
	p.mu.Unlock()
	select {
	case p.queue <- began{r.Job, r.ID, r.Occurrence, over}:
	default:
		p.forget(r.ID)
		p.log.Warn("the ping that a run begins was dropped: too many wait", audit.Job(r.Job), audit.RunID(r.ID))
	}
}

// Ended is called when a run is over, which is the Sender's to tell: what was not told by now must not come after that.
func (p *Pinger) Ended(e *scheduler.Ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if over, ok := p.going[e.Run.ID]; ok {
		close(over)
		delete(p.going, e.Run.ID)
	}
}

func (p *Pinger) forget(run int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.going, run)
}

// Run sends until ctx ends.
func (p *Pinger) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for range pingWorkers {
		wg.Go(func() {
			for {
				select {
				case b := <-p.queue:
					p.tell(ctx, b)
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// tell tries twice, while the run goes on.
func (p *Pinger) tell(ctx context.Context, b began) {
	defer p.forget(b.run)
	j := p.job(b.job)
	if j == nil || j.Ping == "" || isOver(b.over) {
		return
	}
	err := p.try(ctx, j, b)
	if err != nil {
		select {
		case <-time.After(retryPause):
			err = p.try(ctx, j, b)
		case <-b.over:
		case <-ctx.Done():
			return
		}
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("the ping that a run begins could not be sent", audit.Job(b.job), audit.RunID(b.run), zap.Error(err))
	}
}

// try sends; a moment after the run is over it has had its time.
func (p *Pinger) try(ctx context.Context, j *jobs.Job, b began) error {
	ctx, cut := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cut(nil)
	wg.Go(func() {
		select {
		case <-b.over:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(startGrace):
			cut(errOver)
		case <-ctx.Done():
		}
	})
	err := p.send(ctx, j, b)
	if err != nil && errors.Is(context.Cause(ctx), errOver) {
		return errOver
	}
	return err
}

var errOver = errors.New("there was no answer when the run was over")

func isOver(over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}
