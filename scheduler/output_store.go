package scheduler

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/uptrace/bun"
)

// chunkRow is a chunk as the addChunks statement takes it.
type chunkRow struct {
	RunID        int64  `json:"run_id"`
	FencingToken int64  `json:"fencing_token"`
	At           int64  `json:"at_byte"`
	Data         string `json:"data"` // hexadecimal
	// Chunks that begin from Head on and before Tail are no longer kept.
	Head int64 `json:"head"`
	Tail int64 `json:"tail"`
}

// addOutput hands in what running runs have printed, and returns the runs of which it did. Of a run that is not this replica's
// any more, or has ended, nothing is stored: the end of a run removes its chunks, and none may come after it. Chunks that
// there is no room for any more are removed with it.
func (s *store) addOutput(ctx context.Context, news []fresh) (stored []int64, err error) {
	rows := make([]chunkRow, len(news))
	for i, n := range news {
		rows[i] = chunkRow{
			RunID: n.of.run.ID, FencingToken: n.of.run.FencingToken, At: n.at, Data: hex.EncodeToString(n.data),
			Head: keptHead, Tail: n.end() - keptTail,
		}
	}
	if s.q.dropChunks == "" {
		stored, err = s.addChunks(ctx, s.db, rows)
	} else {
		err = s.tx(ctx, func(tx bun.Tx) error {
			if stored, err = s.addChunks(ctx, tx, rows); err != nil {
				return err
			}
			return s.dropChunks(ctx, tx, rows)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("handing in output: %w", err)
	}
	return stored, nil
}

func (s *store) addChunks(ctx context.Context, db bun.IDB, rows []chunkRow) (stored []int64, err error) {
	if err := db.NewRaw(s.q.addChunks, encode(rows)).Scan(ctx, &stored); err != nil {
		return nil, fmt.Errorf("inserting chunks: %w", err)
	}
	return stored, nil
}

// dropChunks needs no data.
func (s *store) dropChunks(ctx context.Context, tx bun.Tx, rows []chunkRow) error {
	for i := range rows {
		rows[i].Data = ""
	}
	if _, err := tx.NewRaw(s.q.dropChunks, encode(rows)).Exec(ctx); err != nil {
		return fmt.Errorf("deleting old chunks: %w", err)
	}
	return nil
}

// clearChunks removes what was handed in while the run was running: its output is stored now.
func (s *store) clearChunks(ctx context.Context, tx bun.Tx, run int64) error {
	if _, err := tx.NewRaw(s.q.clearChunks, run).Exec(ctx); err != nil {
		return fmt.Errorf("deleting the chunks of a run that has ended: %w", err)
	}
	return nil
}
