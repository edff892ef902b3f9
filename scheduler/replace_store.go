package scheduler

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/jobs"
)

// replacedRow is an unfinished run that has to give way to a later one that is due.
type replacedRow struct {
	ID    int64      `bun:"id"`
	State jobs.State `bun:"state"`
	By    int64      `bun:"replaced_by"`
}

// replace makes room for due runs with overlap: replace. Waiting runs are cancelled; a running one is asked to end, and the
// later one waits for that like for any earlier run. Held runs stay: a person decides about them.
func (s *store) replace(ctx context.Context, tx bun.Tx) (ended []jobs.Run, asked bool, err error) {
	var rows []replacedRow
	if err := tx.NewRaw(s.q.replaced).Scan(ctx, &rows); err != nil {
		return nil, false, fmt.Errorf("selecting runs to be replaced: %w", err)
	}
	var endings []ending
	var requests []endRequest
	seen := make(map[int64]bool, len(rows))
	for _, r := range rows {
		if seen[r.ID] {
			continue // several later runs replace it; the first of them is named
		}
		seen[r.ID] = true
		facts := detail(map[string]any{"replaced_by": r.By})
		if r.State == jobs.StateRunning {
			requests = append(requests, endRequest{r.ID, jobs.ReasonReplaced, facts})
			continue
		}
		endings = append(endings, ending{
			ID: r.ID, FromState: jobs.StatePending, Outcome: jobs.OutcomeCancelled, Reason: jobs.ReasonReplaced, Detail: facts,
		})
	}
	if ended, err = s.end(ctx, tx, endings); err != nil {
		return nil, false, err
	}
	return ended, len(requests) > 0, s.askToEnd(ctx, tx, requests)
}

// endRequest asks the holder of a running run to end it.
type endRequest struct {
	ID     int64           `json:"id"`
	Reason jobs.Reason     `json:"reason"`
	Detail json.RawMessage `json:"detail"`
}

// askToEnd writes requests into the rows of running runs, where their holders see them within a second. The first request
// counts.
func (s *store) askToEnd(ctx context.Context, db bun.IDB, requests []endRequest) error {
	if len(requests) == 0 {
		return nil
	}
	if _, err := db.NewRaw(s.q.askToEnd, encode(requests)).Exec(ctx); err != nil {
		return fmt.Errorf("asking runs to end: %w", err)
	}
	return nil
}

// cancelling are all running runs of the fleet that were asked to end.
func (s *store) cancelling(ctx context.Context) ([]jobs.Run, error) {
	runs, err := jobs.ScanRuns(ctx, s.db.NewRaw(s.q.cancelling))
	if err != nil {
		return nil, fmt.Errorf("reading requests to end: %w", err)
	}
	return runs, nil
}
