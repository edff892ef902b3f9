package wire

import (
	"time"

	"github.com/cronlatch/cronlatch/scheduler"
)

// What a replica is.
const (
	ReplicaUp       = "up"
	ReplicaDraining = "draining" // takes no runs: it was asked, or is leaving
	ReplicaSilent   = "silent"   // it was not heard of for lock.ttl
)

// Replica is one process, as it last said of itself.
type Replica struct {
	Name        string            `json:"name"`
	State       string            `json:"state"`
	Host        string            `json:"host"`
	PID         int               `json:"pid"`
	Version     string            `json:"version"`
	Definitions string            `json:"definitions"` // the hash of its jobs
	Odd         bool              `json:"odd"`         // most of those that are up have another hash
	Running     int               `json:"running"`
	Capacity    int               `json:"capacity"`
	Draining    bool              `json:"draining"` // it says so itself: it takes no runs any more
	Drain       *ReplicaDrain     `json:"drain"`    // null: nobody asked it
	Labels      map[string]string `json:"labels"`
	JoinedAt    time.Time         `json:"joined_at"`
	SeenAt      time.Time         `json:"seen_at"`
	SilentMS    int64             `json:"silent_ms"` // since then, by the database's clock
}

// ReplicaDrain is the request that a replica take no more runs.
type ReplicaDrain struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// ReplicaList is the answer to calls about replicas.
type ReplicaList struct {
	Replicas []Replica `json:"replicas"`
}

// DrainRequest is the body of a drain.
type DrainRequest struct {
	Reason string `json:"reason,omitempty"`
}

// ReplicasOf are replicas as the API shows them; ttl is after what silence one counts as gone.
func ReplicasOf(rows []scheduler.ReplicaRow, ttl time.Duration) []Replica {
	views := make([]Replica, len(rows))
	for i := range rows {
		r := &rows[i]
		v := Replica{
			Name: r.Name, State: ReplicaUp, Host: r.Host, PID: r.PID, Version: r.Version, Definitions: r.Hash, Running: r.Running,
			Capacity: r.Capacity, Draining: r.Draining, Labels: r.Labels, JoinedAt: r.JoinedAt.UTC(), SeenAt: r.SeenAt.UTC(),
			SilentMS: max(0, r.Silence().Milliseconds()),
		}
		if v.Labels == nil {
			v.Labels = map[string]string{}
		}
		if !r.DrainAskedAt.IsZero() {
			v.Drain = &ReplicaDrain{By: r.DrainAskedBy, Reason: r.DrainReason, At: r.DrainAskedAt.UTC()}
		}
		switch {
		case r.Silence() > ttl:
			v.State = ReplicaSilent
		case v.Draining || v.Drain != nil:
			v.State = ReplicaDraining
		}
		views[i] = v
	}
	markOdd(views)
	return views
}

// markOdd marks who has other jobs than most of those that are up. Where no hash is that of most, nobody can say who is
// right, and all are odd.
func markOdd(views []Replica) {
	votes := map[string]int{}
	for i := range views {
		if views[i].State == ReplicaUp {
			votes[views[i].Definitions]++
		}
	}
	most, second, winner := 0, 0, ""
	for hash, n := range votes {
		if n > most {
			most, second, winner = n, most, hash
		} else {
			second = max(second, n)
		}
	}
	for i := range views {
		v := &views[i]
		v.Odd = v.State == ReplicaUp && (most == second || v.Definitions != winner)
	}
}
