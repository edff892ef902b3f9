package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// ReplicaRow is what a replica last said of itself.
type ReplicaRow struct {
	Name     string      `bun:"name"`
	Nonce    string      `bun:"boot_nonce"` // unique to its process
	Host     string      `bun:"host"`
	PID      int         `bun:"pid"`
	Version  string      `bun:"version"`
	Hash     string      `bun:"definitions_hash"` // of its jobs; equal hashes agree on everything that runs
	Capacity int         `bun:"capacity"`
	Running  int         `bun:"running"`
	Draining bool        `bun:"draining"`
	Labels   Labels      `bun:"labels"`
	JoinedAt dbtime.Time `bun:"joined_at"`
	SeenAt   dbtime.Time `bun:"seen_at"`
	Now      dbtime.Time `bun:"now"` // the database's clock

	// DrainAskedAt is when somebody asked for it to take no more runs; zero is nobody. Draining is what it says itself.
	DrainAskedAt dbtime.Time `bun:"drain_asked_at"`
	DrainAskedBy string      `bun:"drain_asked_by"`
	DrainReason  string      `bun:"drain_reason"`
}

// Labels are what a replica says of itself; empty is nothing.
type Labels map[string]string

// Scan reads the JSON document of either database.
func (l *Labels) Scan(src any) error {
	var text rawText
	if err := text.Scan(src); err != nil {
		return err
	}
	if err := json.Unmarshal(text, l); err != nil {
		return fmt.Errorf("scheduler: reading labels: %w", err)
	}
	return nil
}

// labelsText is the document that Scan reads.
func labelsText(l Labels) string {
	if l == nil {
		return "{}"
	}
	return encode(l)
}

// Silence is how long ago the replica was heard of.
func (r *ReplicaRow) Silence() time.Duration { return r.Now.Sub(r.SeenAt.Time) }

// maxReplicas bounds a list: it is for people.
const maxReplicas = 1000

// Replicas lists the replicas that have not left and were heard of within a span, by name. One that was killed is among
// them, with an old SeenAt: nobody can tell it from one that is silent for a moment.
func Replicas(ctx context.Context, db bun.IDB, within time.Duration) ([]ReplicaRow, error) {
	var query string
	switch name := db.Dialect().Name(); name {
	case dialect.PG:
		query = postgresReplicas
	case dialect.SQLite:
		query = sqliteReplicas
	default:
		return nil, fmt.Errorf("scheduler: no replicas for dialect %v", name)
	}
	var rows []ReplicaRow
	if err := db.NewRaw(query, within.Seconds(), maxReplicas).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("reading the replicas: %w", err)
	}
	return rows, nil
}

// A replica that lost the database for a while has a row for each lifetime; the last one counts.
const replicaColumns = `SELECT r.name, r.boot_nonce, r.host, r.pid, r.version, r.definitions_hash, r.capacity, r.running, r.draining, r.labels,
	r.joined_at, r.seen_at, d.drain_asked_at, coalesce(d.drain_asked_by, '') AS drain_asked_by, coalesce(d.drain_reason, '') AS drain_reason, `

// A request to drain is for the process, whichever of its lifetimes has it.
const replicaTables = `
FROM replicas AS r
LEFT JOIN replicas AS d ON d.id = (
	SELECT max(x.id) FROM replicas AS x WHERE x.boot_nonce = r.boot_nonce AND x.drain_asked_at IS NOT NULL)
`

const postgresReplicas = replicaColumns + `clock_timestamp() AS now` + replicaTables + `
WHERE r.left_at IS NULL AND r.seen_at > clock_timestamp() - ? * interval '1 second'
	AND NOT EXISTS (SELECT 1 FROM replicas AS l WHERE l.boot_nonce = r.boot_nonce AND l.id > r.id)
ORDER BY r.name, r.id LIMIT ?`

const sqliteReplicas = replicaColumns + sqliteNow + ` AS now` + replicaTables + `
WHERE r.left_at IS NULL AND r.seen_at > ` + sqliteNow + ` - CAST(? * 1000 AS INTEGER)
	AND NOT EXISTS (SELECT 1 FROM replicas AS l WHERE l.boot_nonce = r.boot_nonce AND l.id > r.id)
ORDER BY r.name, r.id LIMIT ?`
