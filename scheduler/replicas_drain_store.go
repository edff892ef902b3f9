package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// HeardOf is how long a replica that says nothing is still among those that people are shown.
const HeardOf = 24 * time.Hour

// NoReplicaError says that there is no replica of a name.
type NoReplicaError struct {
	Name  string
	There []string // the names of those that are there
}

func (e *NoReplicaError) Error() string {
	return fmt.Sprintf("scheduler: there is no replica %q", e.Name)
}

// DrainRequest is about all processes of a name: there should be one, and nobody could say which of two is meant.
type DrainRequest struct {
	Replica string
	Undrain bool // the request before is taken back
	Reason  string
	By      string
}

// RequestDrain asks the replicas of a name to take no more runs, or takes that back, and returns them as they are then. They
// obey within about a second. Asking again changes who asked, and why.
func RequestDrain(ctx context.Context, db *DB, r DrainRequest) (rows []ReplicaRow, err error) {
	s, err := openStore(db)
	if err != nil {
		return nil, err
	}
	err = s.tx(ctx, func(tx bun.Tx) error {
		if rows, err = s.replicasNamed(ctx, tx, r.Replica); err != nil {
			return err
		}
		if err := s.writeDrain(ctx, tx, r, rows); err != nil {
			return err
		}
		rows, err = s.replicasNamed(ctx, tx, r.Replica)
		return err
	})
	if missing, ok := errors.AsType[*NoReplicaError](err); ok {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("asking a replica to drain: %w", err)
	}
	return rows, nil
}

func (*store) replicasNamed(ctx context.Context, tx bun.Tx, name string) (named []ReplicaRow, err error) {
	all, err := Replicas(ctx, tx, HeardOf)
	if err != nil {
		return nil, err
	}
	missing := &NoReplicaError{Name: name}
	for i := range all {
		if all[i].Name == name {
			named = append(named, all[i])
		}
		missing.There = append(missing.There, all[i].Name)
	}
	if len(named) == 0 {
		return nil, missing
	}
	return named, nil
}

// writeDrain writes all lifetimes of the processes: one that loses the database now comes back with a row of its own, and
// the request must be found all the same.
func (s *store) writeDrain(ctx context.Context, tx bun.Tx, r DrainRequest, rows []ReplicaRow) error {
	action, at, by, reason := audit.ReplicaDrain, rows[0].Now.Time, r.By, r.Reason
	if r.Undrain {
		action, at, by, reason = audit.ReplicaUndrain, time.Time{}, "", ""
	}
	for i := range rows {
		if _, err := tx.NewRaw(s.q.askDrain, dbtime.Arg(s.d, at), by, reason, rows[i].Nonce).Exec(ctx); err != nil {
			return fmt.Errorf("writing the request: %w", err)
		}
		entry := AuditEntry{
			Action: string(action), Outcome: string(audit.Success), ActorType: string(audit.ActorUser), ActorID: r.By,
			Replica: rows[i].Name, Reason: r.Reason,
			Detail: detail(map[string]any{"host": rows[i].Host, "pid": rows[i].PID, "running": rows[i].Running}),
		}
		if err := addAudit(ctx, tx, &entry); err != nil {
			return err
		}
	}
	return nil
}

// drainOf is the request to a process; nil is none.
func (s *store) drainOf(ctx context.Context, nonce string) (*Drain, error) {
	var rows []struct {
		At     dbtime.Time `bun:"drain_asked_at"`
		By     string      `bun:"drain_asked_by"`
		Reason string      `bun:"drain_reason"`
	}
	if err := s.db.NewRaw(s.q.drainOf, nonce).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("reading a request to drain: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	return &Drain{By: rows[0].By, Reason: rows[0].Reason, At: rows[0].At.Time}, nil
}
