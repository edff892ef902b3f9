package locking

import (
	"sync"
	"time"
)

// maxDrift is how fast two sound clocks may run apart: 500 ppm is the most that NTP slews, the rest is for crystals.
const maxDrift = 0.001

// StepDetector finds steps of the database's clock by comparing it with the boot clock. An observation bounds their
// difference by the window in which the request was on its way, so a slow answer makes it less sharp but never wrong:
// what is reported happened. The zero value is ready; it is safe for concurrent use.
//
// It does not see a step that is smaller than the windows, nor a drift below one in a thousand.
type StepDetector struct {
	mu     sync.Mutex
	known  bool
	at     time.Duration // boot clock of the last observation
	lo, hi time.Duration // bounds of (database's clock - boot clock)
}

// Observe takes the database's time that was read somewhere between sent and received on the boot clock. It returns by
// how much the database's clock stepped since the last observation at least: positive is forward, 0 is not at all.
func (d *StepDetector) Observe(sent, received time.Duration, database time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	wall := time.Duration(database.UnixNano())
	within := drift(received - sent)
	lo, hi := wall-received-within, wall-sent+within
	if !d.known {
		d.known, d.at, d.lo, d.hi = true, received, lo, hi
		return 0
	}
	if received < d.at {
		return 0 // an answer that was overtaken says nothing new
	}
	since := drift(received - d.at)
	knownLo, knownHi := d.lo-since, d.hi+since
	d.at = received
	if lo <= knownHi && hi >= knownLo {
		d.lo, d.hi = max(knownLo, lo), min(knownHi, hi)
		return 0
	}
	d.lo, d.hi = lo, hi
	if lo > knownHi {
		return lo - knownHi
	}
	return hi - knownLo
}

func drift(d time.Duration) time.Duration { return time.Duration(float64(d) * maxDrift) }
