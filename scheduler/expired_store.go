package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/jobs"
)

// whyExpired looks for what may have kept runs from starting until their start_deadline: a pause, or that no replica has the
// labels. It asks for neither when nothing is late, as mostly.
func (s *store) whyExpired(ctx context.Context, tx bun.Tx, rows []endedRow) error {
	if err := s.whyPaused(ctx, tx, rows); err != nil {
		return err
	}
	return s.whyUnmatched(ctx, tx, rows)
}

func (s *store) whyPaused(ctx context.Context, tx bun.Tx, rows []endedRow) error {
	first, last := -1, -1
	for i := range rows {
		if r := &rows[i]; r.pausable() {
			if first < 0 || r.StartBy.Before(rows[first].StartBy.Time) {
				first = i
			}
			if last < 0 || r.StartBy.After(rows[last].StartBy.Time) {
				last = i
			}
		}
	}
	if first < 0 {
		return nil
	}
	pauses, err := s.pausesBetween(ctx, tx, rows[first].StartBy.Time, rows[last].StartBy.Time)
	if err != nil {
		return err
	}
	for i := range rows {
		if r := &rows[i]; r.pausable() {
			r.pause = covering(pauses, r.Job, r.StartBy.Time)
		}
	}
	return nil
}

// pausable: a manual run does not wait for the end of a pause.
func (r *endedRow) pausable() bool { return r.Expired && !strings.HasPrefix(r.Occurrence, "m:") }

func (s *store) whyUnmatched(ctx context.Context, tx bun.Tx, rows []endedRow) error {
	var there []ReplicaRow
	for i := range rows {
		r := &rows[i]
		if !r.Expired || string(r.OnlyOn) == "{}" {
			continue
		}
		if there == nil {
			var err error
			if there, err = Replicas(ctx, tx, s.silence); err != nil {
				return err
			}
		}
		var want jobs.Labels
		if err := json.Unmarshal(r.OnlyOn, &want); err != nil {
			return fmt.Errorf("reading only_on of run %d: %w", r.ID, err)
		}
		if !slices.ContainsFunc(there, func(have ReplicaRow) bool { return want.Match(have.Labels) }) {
			r.unmatched = map[string]any{"only_on": want, "replicas": labelsOf(there)}
		}
	}
	return nil
}

// replicaLabels is a replica in the facts of a run.
type replicaLabels struct {
	Name   string `json:"name"`
	Labels Labels `json:"labels"`
}

func labelsOf(rows []ReplicaRow) []replicaLabels {
	list := make([]replicaLabels, len(rows))
	for i := range rows {
		list[i] = replicaLabels{rows[i].Name, rows[i].Labels}
	}
	return list
}
