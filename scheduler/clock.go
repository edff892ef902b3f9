package scheduler

import (
	"sync"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

// clock estimates the database's clock from the last answer and the boot clock. The estimate only decides when to look;
// what is due is decided by the database itself.
type clock struct {
	boot   func() time.Duration
	ttl    time.Duration
	margin time.Duration // a larger difference between estimate and answer is a step

	mu       sync.Mutex
	at       time.Time     // the database's clock ...
	atBoot   time.Duration // ... when the boot clock read this: the moment the answer came, so the estimate is never early
	holdTill time.Duration // on the boot clock; no claims before

	steps locking.StepDetector
}

func newClock(boot func() time.Duration, ttl time.Duration) *clock {
	return &clock{boot: boot, ttl: ttl, margin: max(ttl/10, 250*time.Millisecond)}
}

// now is the estimate; the zero time before the first answer.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimate(c.boot())
}

func (c *clock) estimate(boot time.Duration) time.Time {
	if c.at.IsZero() {
		return time.Time{}
	}
	return c.at.Add(boot - c.atBoot)
}

// observe takes an answer that was asked for at sent. It returns by how much the database's clock jumped since the last
// one, 0 when that is within the margin or can be explained by the time the question took.
func (c *clock) observe(answer time.Time, sent time.Duration) (step time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	received := c.boot()
	c.at, c.atBoot = answer, received
	if step = c.steps.Observe(sent, received, answer); step.Abs() <= c.margin {
		return 0
	}
	return step
}

// stepped holds new claims back for one TTL: by then every lock that was granted before the jump is over, on whichever
// side of it.
func (c *clock) stepped(time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holdTill = c.boot() + c.ttl
}

func (c *clock) held() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.boot() < c.holdTill
}
