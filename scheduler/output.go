package scheduler

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/jobs"
)

// talker is a Process whose output can be read while it runs. One that is none shows its output at the end.
type talker interface {
	// Output is what was printed from a byte on, in one piece of at most jobs.MaxChunk bytes.
	Output(ctx context.Context, since int64) (jobs.Chunk, error)
}

const (
	// streamEvery is how often new output of running runs is handed in. A run that does not live that long hands in nothing.
	streamEvery = 500 * time.Millisecond
	// streamAsk bounds how long the processes are asked in one beat.
	streamAsk = 2 * time.Second
	// streamBytes bounds what one beat hands in, of all runs together; who came too late is the first one in the next beat.
	streamBytes = 1 << 20
	// What is kept of a running run is as much as of one that has ended: the beginning and the end.
	keptHead = 64 << 10
	keptTail = 192 << 10
	// smallChunk: what is printed in small pieces shares rows, so that a run does not have thousands of them.
	smallChunk = 4 << 10
)

// stream is the output of one running run, on its way to where all replicas can read it.
type stream struct {
	run   *jobs.Run
	proc  talker
	since time.Duration // on the boot clock

	// The beat's.
	next int64 // the first byte that was not handed in
	last chunk // the chunk that was handed in last

	mu      sync.Mutex
	written bool // there may be chunks of it in the database
	closed  bool // the run has ended, and nothing may be handed in any more
}

// chunk is a row of run_output_chunks.
type chunk struct {
	at   int64
	data []byte
}

func (c *chunk) end() int64 { return c.at + int64(len(c.data)) }

// joined is the last chunk with c behind it, where both fit into one, else c.
func (t *stream) joined(c chunk) chunk {
	sameEnd := (t.last.at < keptHead) == (c.at < keptHead)
	small := len(t.last.data) > 0 && len(t.last.data) <= smallChunk && len(t.last.data)+len(c.data) <= jobs.MaxChunk
	if !small || !sameEnd || t.last.end() != c.at {
		return c
	}
	return chunk{t.last.at, slices.Concat(t.last.data, c.data)}
}

// begin says that a chunk is about to be handed in; false when it is too late for that.
func (t *stream) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = t.written || !t.closed
	return !t.closed
}

func (t *stream) close() (written bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return t.written
}

// streams are those of this replica.
type streams struct {
	mu     sync.Mutex
	list   []*stream
	opened chan struct{} // one was added; holds one
}

// open adds a run; nil when its process cannot be read.
func (l *streams) open(run *jobs.Run, p Process, now time.Duration) *stream {
	proc, ok := p.(talker)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &stream{run: run, proc: proc, since: now}
	l.list = append(l.list, t)
	select {
	case l.opened <- struct{}{}:
	default:
	}
	return t
}

// close removes a run that has ended, and reports whether there may be chunks of it. What is handed in of it at this moment
// is not waited for: the statement sees whether the run is finished in the ledger.
func (l *streams) close(t *stream) (written bool) {
	if t == nil {
		return false
	}
	l.mu.Lock()
	l.list = slices.DeleteFunc(l.list, func(o *stream) bool { return o == t })
	l.mu.Unlock()
	return t.close()
}

func (l *streams) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// old are the runs that live for long enough by now.
func (l *streams) old(now time.Duration) []*stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	var old []*stream
	for _, t := range l.list {
		if now-t.since >= streamEvery {
			old = append(old, t)
		}
	}
	return old
}

// last moves a run to the end: the others come before it in the next beat.
func (l *streams) last(t *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.list, t); i >= 0 {
		l.list = append(slices.Delete(l.list, i, i+1), t)
	}
}

// startStreaming hands in what running runs print; the returned function ends it. It is in nobody's way: a database or a
// supervisor that does not answer delays the next beat and nothing else.
func (s *Scheduler) startStreaming(ctx context.Context) (stop func()) {
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		for streaming.Err() == nil {
			if s.live.count() == 0 {
				select {
				case <-s.live.opened:
				case <-streaming.Done():
				}
				continue
			}
			select {
			case <-time.After(streamEvery):
			case <-streaming.Done():
				return
			}
			if err := s.stream(streaming); err != nil && streaming.Err() == nil {
				s.o.Log.Debug("the output of running jobs could not be handed in", zap.Error(err))
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// stream is one beat.
func (s *Scheduler) stream(ctx context.Context) error {
	news := s.news(ctx)
	if len(news) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	stored, err := s.store.addOutput(ctx, news)
	if err != nil {
		return err
	}
	for _, n := range news {
		if slices.Contains(stored, n.of.run.ID) { // else it has ended, or somebody changes its row: the next beat tries again
			n.of.next, n.of.last = n.end(), n.chunk
		}
		s.live.last(n.of)
	}
	return nil
}

// fresh is a chunk that is to be handed in.
type fresh struct {
	chunk

	of *stream
}

// news asks all runs what they have printed since the last beat.
func (s *Scheduler) news(ctx context.Context) []fresh {
	ctx, cancel := context.WithTimeout(ctx, streamAsk)
	defer cancel()
	var news []fresh
	size := 0
	for _, t := range s.live.old(s.o.Boot()) {
		if size >= streamBytes {
			break
		}
		c, err := t.proc.Output(ctx, t.next)
		if err != nil || len(c.Data) == 0 {
			continue
		}
		if n := (fresh{t.joined(chunk{c.At, c.Data}), t}); t.begin() {
			size += len(n.data)
			news = append(news, n)
		}
	}
	return news
}
