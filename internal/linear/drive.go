package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

// Config describes a drive. Only Stores is needed.
type Config struct {
	Stores    []locking.Store // client i uses the i-th, around; all on one table
	Clients   int             // 8
	Calls     int             // of each client; 2,000
	Segment   int             // calls of each client between two quiet moments; 200
	Resources int             // 4
	TTL       time.Duration   // of every grant and renewal; 100ms
	Seed      uint64
	// Hurry is the part of the calls, in thousandths, that get a deadline which many of them do not make.
	Hurry int
	// Deadline ends a call without an answer; 5s.
	Deadline time.Duration
	// Disturb is called in the middle of each segment that is long enough, while the clients go on; nil is none. It has
	// returned before Quiet is called.
	Disturb func(segment int)
	// Quiet waits, at the end of each segment, until nothing that a client gave up is on its way in the database, and the
	// stores answer again; nil is at once.
	Quiet func(ctx context.Context, segment int) error
}

// Stats count answers by "verb verdict", so that a test can fail when it met too little.
type Stats map[string]int

type drive struct {
	Config

	history   *History
	resources []string
	owners    atomic.Int64

	mu    sync.Mutex
	stats Stats
	past  []call // renewals and releases that were right once
}

// Drive makes the clients' calls. An error is one of Quiet, or of the reading at a quiet moment; what the stores answered
// is in the history.
func Drive(ctx context.Context, c Config) (*History, Stats, error) {
	c.Clients, c.Calls, c.Segment = or(c.Clients, 8), or(c.Calls, 2000), or(c.Segment, 200)
	c.Resources, c.TTL, c.Deadline = or(c.Resources, 4), or(c.TTL, 100*time.Millisecond), or(c.Deadline, 5*time.Second)
	d := &drive{Config: c, stats: make(Stats)}
	for i := range c.Resources {
		d.resources = append(d.resources, fmt.Sprintf("linear/%d", i))
	}
	d.history = newHistory(d.resources)
	clients := make([]*client, c.Clients)
	for i := range clients {
		clients[i] = &client{
			drive: d, number: i, store: c.Stores[i%len(c.Stores)], left: c.Calls, held: make(map[string]call),
			rnd: rand.New(rand.NewPCG(c.Seed, uint64(i))), //nolint:gosec // reproducible on purpose
		}
	}
	for segment := 0; d.left(clients) > 0; segment++ {
		d.run(ctx, clients, segment)
		if err := d.rest(ctx, segment); err != nil {
			return nil, nil, err
		}
	}
	return d.history, d.stats, nil
}

func or[T int | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

func (*drive) left(clients []*client) (n int) {
	for _, c := range clients {
		n += c.left
	}
	return n
}

// run is one segment. The clients go on while the first one disturbs.
func (d *drive) run(ctx context.Context, clients []*client, segment int) {
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for i := range min(d.Segment, c.left) {
				if c.number == 0 && i == d.Segment/2 && d.Disturb != nil {
					d.Disturb(segment)
				}
				if c.left--; !c.step(ctx) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// rest is a quiet moment.
func (d *drive) rest(ctx context.Context, segment int) error {
	if d.Quiet != nil {
		if err := d.Quiet(ctx, segment); err != nil {
			return fmt.Errorf("after segment %d: %w", segment, err)
		}
	}
	d.history.quiet(time.Now())
	read := make(map[string]answer, len(d.resources))
	for i, name := range d.resources {
		c := call{verb: get, resource: name}
		a := d.ask(ctx, -1, d.Stores[i%len(d.Stores)], c)
		if a.verdict == unknown {
			return fmt.Errorf("after segment %d: %s cannot be read", segment, name)
		}
		read[name] = a
	}
	d.history.settle(read)
	return nil
}

// ask makes one call and notes it.
func (d *drive) ask(ctx context.Context, client int, s locking.Store, c call) answer {
	ctx, cancel := context.WithTimeout(ctx, d.Deadline)
	defer cancel()
	sent := time.Now()
	row, ok, err := c.send(ctx, s)
	received := time.Now()
	a := answerOf(c, row, ok, err)
	d.history.note(client, c, a, sent, received)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats[string(c.verb)+" "+string(a.verdict)]++
	return a
}

// send returns false with the holder's row for an acquire that was refused.
func (c call) send(ctx context.Context, s locking.Store) (row locking.Record, ok bool, err error) {
	claim := []locking.Claim{{Resource: c.resource, Owner: c.owner, FencingToken: c.token, TTL: c.ttl}}
	var res []locking.ClaimResult
	switch c.verb {
	case acquire:
		var got []locking.AcquireResult
		got, err = s.Acquire(ctx, []locking.AcquireRequest{{Resource: c.resource, Owner: c.owner, TTL: c.ttl}})
		if err != nil {
			return row, true, err
		}
		return got[0].Record, got[0].Acquired, nil
	case renew:
		res, err = s.Renew(ctx, claim)
	case release:
		res, err = s.Release(ctx, claim)
	case get:
		row, err = s.Get(ctx, c.resource)
		return row, true, err
	case force:
		row, err = s.ForceRelease(ctx, locking.Force{
			Resource: c.resource, FencingToken: c.token, Reason: "linear", Immediate: c.immediate,
		})
		return row, true, err
	}
	if err != nil {
		return row, true, err
	}
	return res[0].Record, true, res[0].Err
}
