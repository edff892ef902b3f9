package jobs

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// DueAt is when the run of an instant becomes due: the instant itself, or up to Jitter later, so that jobs with the same
// schedule do not start together. It is a hash of the job's name and the instant, so that all replicas agree; what the
// run is called, locks and reports on stays the instant's.
func (j *Job) DueAt(at time.Time) time.Time { return at.Add(jitterOf(j.Name, at, j.Jitter)) }

// jitterOf is from 0 up to, but not including, most; the same for the same name and instant.
func jitterOf(name string, at time.Time, most time.Duration) time.Duration {
	steps := uint64(most.Milliseconds())
	if most < time.Millisecond {
		return 0
	}
	key := binary.BigEndian.AppendUint64([]byte("jitter\x00"), uint64(at.Unix()))
	sum := sha256.Sum256(append(key, name...))
	return time.Duration(binary.BigEndian.Uint64(sum[:8])%steps) * time.Millisecond
}
