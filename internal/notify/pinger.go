package notify

import (
	"context"
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

// Pinger tells the ping URLs of jobs that a run begins here. No run waits for it: what does not fit into its queue is dropped.
// The end of a run is told by a Sender.
type Pinger struct {
	job   func(name string) *jobs.Job
	log   *zap.Logger
	queue chan began
	send  func(ctx context.Context, j *jobs.Job, b began) error
}

type began struct {
	job        string
	run        int64
	occurrence string
}

// NewPinger returns a pinger; job finds a job as it is defined now, nil when there is none.
func NewPinger(job func(name string) *jobs.Job, log *zap.Logger) *Pinger {
	return &Pinger{
		job: job, log: log, queue: make(chan began, pingQueue),
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
	select {
	case p.queue <- began{r.Job, r.ID, r.Occurrence}:
	default:
		p.log.Warn("the ping that a run begins was dropped: too many wait", audit.Job(r.Job), audit.RunID(r.ID))
	}
}

// Ended is called when a run is over; that is the Sender's to tell.
func (*Pinger) Ended(*scheduler.Ending) {}

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

// tell tries twice.
func (p *Pinger) tell(ctx context.Context, b began) {
	j := p.job(b.job)
	if j == nil || j.Ping == "" {
		return
	}
	err := p.send(ctx, j, b)
	if err != nil {
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return
		}
		err = p.send(ctx, j, b)
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("the ping that a run begins could not be sent", audit.Job(b.job), audit.RunID(b.run), zap.Error(err))
	}
}
