package demo

import (
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// historyLength is more than the longest month, so that a monthly job has run.
const historyLength = 31 * 24 * time.Hour

// What happened in the past, as time before now.
const (
	outageAgo    = 9*24*time.Hour + 30*time.Minute // all replicas lost the database for a while around a backup
	outageLength = 70 * time.Minute
	crashAgo     = 12 * 24 * time.Hour // a replica was killed in the middle of a backup
	crashLength  = 4 * time.Minute
	pauseAgo     = 5 * 24 * time.Hour // somebody paused a job
	pauseLength  = 26 * time.Hour
)

// span is from From (included) to Until (not included).
type span struct{ From, Until time.Time }

func (s span) has(at time.Time) bool { return !at.Before(s.From) && at.Before(s.Until) }

func (s span) meets(o span) bool { return s.From.Before(o.Until) && o.From.Before(s.Until) }

// lifetime is a row of the table replicas.
type lifetime struct {
	span

	Name, Nonce string
	Killed      bool // it never said goodbye
}

// timeline is who was there when.
type timeline struct {
	rng       *rand.Rand
	now       time.Time
	outage    span
	crash     span // of the replica crashed
	crashed   string
	pause     span
	lifetimes []lifetime
}

// newTimeline places the outage and the crash around backups, which tell the better stories.
func newTimeline(seed uint64, now time.Time, backups []time.Time) *timeline {
	t := &timeline{rng: rand.New(rand.NewPCG(seed, seed)), now: now, crashed: "c"} //nolint:gosec // a story needs no secret
	down := atOrBefore(backups, now.Add(-outageAgo)).Add(-20 * time.Minute)
	t.outage = span{down, down.Add(outageLength)}
	killed := atOrBefore(backups, now.Add(-crashAgo)).Add(5 * time.Minute)
	t.crash = span{killed, killed.Add(crashLength)}
	paused := now.Add(-pauseAgo).Truncate(time.Minute)
	t.pause = span{paused, paused.Add(pauseLength)}
	for _, name := range replicaNames() {
		t.live(name, span{now.Add(-historyLength), now})
	}
	return t
}

// atOrBefore is the last instant that is not after another one.
func atOrBefore(instants []time.Time, limit time.Time) time.Time {
	last := instants[0]
	for _, at := range instants {
		if !at.After(limit) {
			last = at
		}
	}
	return last
}

// live cuts the span of a replica where it was away.
func (t *timeline) live(name string, all span) {
	breaks := []span{t.outage}
	if name == t.crashed {
		breaks = []span{t.crash, t.outage}
	}
	from := all.From
	for _, b := range breaks {
		t.lifetimes = append(t.lifetimes, lifetime{span{from, b.From}, name, t.nonce(), true})
		from = b.Until
	}
	t.lifetimes = append(t.lifetimes, lifetime{span{from, all.Until}, name, t.nonce(), false})
}

func (t *timeline) nonce() string {
	var b [8]byte
	for i := range b {
		b[i] = byte(t.rng.Uint32())
	}
	return hex.EncodeToString(b[:])
}

// anybody is a replica that lived through all of a run.
func (t *timeline) anybody(run span) lifetime {
	var there []lifetime
	for _, l := range t.lifetimes {
		if !run.From.Before(l.From) && !run.Until.After(l.Until) {
			there = append(there, l)
		}
	}
	if len(there) == 0 { // nobody did: the run begins and ends around an outage
		return t.lifetimes[0]
	}
	return there[t.rng.IntN(len(there))]
}

// replica is the lifetime of one of them at an instant.
func (t *timeline) replica(name string, at time.Time) lifetime {
	for _, l := range t.lifetimes {
		if l.Name == name && l.has(at) {
			return l
		}
	}
	return t.lifetimes[0]
}

func (t *timeline) between(least, most time.Duration) time.Duration {
	return least + time.Duration(t.rng.Int64N(int64(most-least)))
}

func (t *timeline) oneIn(n int) bool { return t.rng.IntN(n) == 0 }
