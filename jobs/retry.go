package jobs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Backoff is how the delay between attempts grows.
type Backoff string

// The kinds of backoff, with the delay before attempt n+1, when n attempts have failed.
const (
	BackoffConstant    Backoff = "constant"    // delay
	BackoffLinear      Backoff = "linear"      // n · delay
	BackoffExponential Backoff = "exponential" // 2^(n-1) · delay
)

// Retry decides whether and when an occurrence whose attempt failed or timed out is tried again. It is written into the
// row, so that every replica can follow it, also one that does not know the job. The zero value never retries.
//
//nolint:recvcheck // a value marshals, only a pointer can be read into
type Retry struct {
	Attempts int // in total, lost ones included
	Delay    time.Duration
	Backoff  Backoff
	MaxDelay time.Duration // no delay is longer; 0 is no bound
}

// jitterPart is the share of a delay by which it differs: what failed together is not tried again together.
const jitterPart = 10

// after is how long the attempt that follows the given one waits. Every replica computes the same: what looks random is a
// hash of the occurrence and the attempt.
func (p Retry) after(job, occurrence string, attempt int) time.Duration {
	delay := p.grown(attempt)
	hash := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", job, occurrence, attempt))
	share := float64(binary.BigEndian.Uint32(hash[:]))/math.MaxUint32*2 - 1
	jitter := time.Duration(share * float64(delay/jitterPart))
	if p.MaxDelay > 0 && delay+jitter > p.MaxDelay {
		jitter = -jitter // stay spread at the bound, instead of meeting there
	}
	return delay + jitter
}

// grown is the delay without its jitter.
func (p Retry) grown(attempt int) time.Duration {
	factor := 1.0
	switch p.Backoff {
	case BackoffLinear:
		factor = float64(attempt)
	case BackoffExponential:
		factor = math.Pow(2, float64(attempt-1))
	case BackoffConstant:
	}
	bound := p.MaxDelay
	if bound == 0 {
		bound = math.MaxInt64 / 2 // with room for the jitter
	}
	if p.Delay <= 0 {
		return 0 // also when factor is infinite
	}
	if grown := factor * float64(p.Delay); grown < float64(bound) {
		return time.Duration(grown)
	}
	return bound
}

// retryDocument is a Retry in its column: durations as people write them.
type retryDocument struct {
	Attempts int     `json:"attempts,omitempty"`
	Delay    string  `json:"delay,omitempty"`
	Backoff  Backoff `json:"backoff,omitempty"`
	MaxDelay string  `json:"max_delay,omitempty"`
}

// MarshalJSON writes {} for a policy that never retries.
func (p Retry) MarshalJSON() ([]byte, error) {
	if p.Attempts < 2 {
		return []byte("{}"), nil
	}
	return json.Marshal(retryDocument{p.Attempts, p.Delay.String(), p.Backoff, p.MaxDelay.String()})
}

// UnmarshalJSON reads what MarshalJSON has written.
func (p *Retry) UnmarshalJSON(data []byte) error {
	var d retryDocument
	if err := json.Unmarshal(data, &d); err != nil {
		return fmt.Errorf("reading a retry policy: %w", err)
	}
	*p = Retry{Attempts: d.Attempts, Backoff: d.Backoff}
	for text, into := range map[*string]*time.Duration{&d.Delay: &p.Delay, &d.MaxDelay: &p.MaxDelay} {
		if *text == "" {
			continue
		}
		var err error
		if *into, err = time.ParseDuration(*text); err != nil {
			return fmt.Errorf("reading a retry policy: %w", err)
		}
	}
	return nil
}
