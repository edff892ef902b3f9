package locking

import (
	"cmp"
	"time"
)

// The bounds of the lease arithmetic (docs/guarantees.md).
const (
	// MinKeptTTL is the smallest TTL of a kept lock: below it, the margin leaves no room for two renewals.
	MinKeptTTL = time.Second
	// DefaultTTL is the TTL of a lock that does not say otherwise.
	DefaultTTL = 30 * time.Second

	minMargin  = 250 * time.Millisecond
	maxAttempt = 3 * time.Second
)

// Lease is the arithmetic of one TTL. All instants that follow from it are on the boot clock, counted from before the
// last successful request was sent: the database's own count began later, so its expiry is later too.
type Lease struct {
	TTL time.Duration
	// Margin is kept between the local deadline and the expiry: for the drift of two clocks, a step of the
	// database's clock, and the time that stopping takes.
	Margin time.Duration // max(TTL/10, 250ms)
	// Beat is the time from one renewal to the next.
	Beat time.Duration // TTL/3
	// Attempt is the longest that one renewal may take.
	Attempt time.Duration // min(3s, TTL/10)
	// Retry is the time from an attempt of unknown outcome to the next.
	Retry time.Duration // TTL/10, and not before the attempt's end
	// Grace is how long before the deadline the holder is told to stop. It is what StopGrace asks for, as far as there
	// is time left after the second missed attempt: a longer one would stop healthy work for one lost answer.
	Grace time.Duration
}

// LeaseConfig is what a lease is computed from; only TTL is needed.
type LeaseConfig struct {
	TTL time.Duration
	// StopGrace is how long the holder would like to have between the order to stop and the deadline.
	StopGrace time.Duration
	// Margin and Attempt replace the computed values when they are not 0.
	Margin, Attempt time.Duration
}

// NewLease computes the lease of a TTL. It does not say whether it makes sense: see Validate.
func NewLease(c LeaseConfig) Lease {
	l := Lease{
		TTL:     c.TTL,
		Margin:  cmp.Or(c.Margin, max(c.TTL/10, minMargin)),
		Beat:    c.TTL / 3,
		Attempt: cmp.Or(c.Attempt, min(maxAttempt, c.TTL/10)),
	}
	l.Retry = max(l.Attempt, c.TTL/10)
	secondMissed := 2*l.Beat + l.Attempt
	l.Grace = max(0, min(c.StopGrace, l.TTL-l.Margin-secondMissed))
	return l
}

// Deadline is when the holder must have stopped if the last successful request was sent at sent.
func (l Lease) Deadline(sent time.Duration) time.Duration { return sent + l.TTL - l.Margin }

// StopAt is when the holder is told to stop.
func (l Lease) StopAt(sent time.Duration) time.Duration { return l.Deadline(sent) - l.Grace }

// Validate refuses a lease in which no renewal can arrive in time.
func (l Lease) Validate() error {
	switch {
	case l.TTL < MinKeptTTL || l.TTL > MaxTTL:
		return invalid("TTL", "is %s; a kept lock needs from %s to %s", l.TTL, MinKeptTTL, MaxTTL)
	case l.Margin < 0 || l.Attempt < 0:
		return invalid("lease", "the margin (%s) and the attempt's timeout (%s) must be positive", l.Margin, l.Attempt)
	case l.Beat < l.Attempt:
		return invalid("lease", "an attempt of %s does not end before the next beat, %s later", l.Attempt, l.Beat)
	case l.Beat+l.Attempt > l.TTL-l.Margin:
		return invalid("lease", "the first renewal may take until %s after the grant, but with a TTL of %s and a margin "+
			"of %s the holder must have stopped after %s", l.Beat+l.Attempt, l.TTL, l.Margin, l.TTL-l.Margin)
	}
	return nil
}
