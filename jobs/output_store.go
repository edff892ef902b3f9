package jobs

import (
	"context"
	"fmt"
)

// outputQueries is the SQL about the output of runs.
type outputQueries struct {
	next   string // the run's id: the next attempt
	end    string // the run's id: where the last chunk ends
	chunks string // the run's id, the first byte that is wanted, the same, how many chunks
}

// Both databases read these alike. A chunk has at most MaxChunk bytes, so that the first one that matters is found by the key.
//
//nolint:gochecknoglobals // a table of statements
var outputSQL = outputQueries{
	next: `
SELECT coalesce((SELECT n.id FROM job_runs AS r JOIN job_runs AS n
	ON n.job = r.job AND n.occurrence = r.occurrence AND n.attempt = r.attempt + 1 WHERE r.id = ?), 0)`,
	end: `
SELECT coalesce((SELECT at_byte + length(data) FROM run_output_chunks WHERE run_id = ? ORDER BY at_byte DESC LIMIT 1), 0)`,
	chunks: `
SELECT at_byte, data FROM run_output_chunks
WHERE run_id = ? AND at_byte > ? - 65536 AND at_byte + length(data) > ? ORDER BY at_byte LIMIT ?`,
}

// maxChunks is how many chunks one look reads: there is one for each half of a second at most.
const maxChunks = 1000

// OutputSince is what a run has printed from a byte on: of one that runs, as its replica has handed it in, which is about
// half a second old; of one that has ended, what is stored with it; of one that was lost, what was handed in before. limit
// bounds the piece. ErrRunNotFound says that the ledger has no such run.
func (l *Ledger) OutputSince(ctx context.Context, runID, offset int64, limit int) (OutputPart, error) {
	// The state first: of a run that ends meanwhile, the next look finds what this one does not.
	run, err := l.Get(ctx, runID)
	if err != nil {
		return OutputPart{}, err
	}
	part := OutputPart{Run: run, Ended: run.State == StateFinished}
	if part.Ended {
		if err := l.db.NewRaw(outputSQL.next, runID).Scan(ctx, &part.Next); err != nil {
			return OutputPart{}, fmt.Errorf("looking for the next attempt: %w", err)
		}
	}
	pieces, total, err := l.pieces(ctx, &run, offset)
	if err != nil {
		return OutputPart{}, err
	}
	part.Total = total
	part.At, part.Data = cut(pieces, offset, total, limit)
	return part, nil
}

// pieces is what is kept of a run's output, from a byte on or from before it, and how much is known to have been printed.
func (l *Ledger) pieces(ctx context.Context, run *Run, offset int64) ([]piece, int64, error) {
	if run.State == StateFinished {
		out, err := l.Output(ctx, run.ID)
		if err != nil || out.Total > 0 {
			return out.pieces(), out.Total, err
		}
	}
	var total int64
	if err := l.db.NewRaw(outputSQL.end, run.ID).Scan(ctx, &total); err != nil || total <= offset {
		return nil, total, wrapOutput(err)
	}
	var chunks []piece
	err := l.db.NewRaw(outputSQL.chunks, run.ID, offset, offset, maxChunks).Scan(ctx, &chunks)
	if n := len(chunks); n > 0 { // a chunk may have come since
		total = max(total, chunks[n-1].At+int64(len(chunks[n-1].Data)))
	}
	return chunks, total, wrapOutput(err)
}

func wrapOutput(err error) error {
	if err != nil {
		return fmt.Errorf("reading the output of a running run: %w", err)
	}
	return nil
}

// Kept is all that is kept of a run's output, of one that runs or was lost, too. A line tells of each gap.
func (l *Ledger) Kept(ctx context.Context, runID int64) ([]byte, Run, error) {
	run, err := l.Get(ctx, runID)
	if err != nil {
		return nil, Run{}, err
	}
	pieces, _, err := l.pieces(ctx, &run, 0)
	if err != nil {
		return nil, Run{}, err
	}
	var all []byte
	end := int64(0)
	for _, p := range pieces {
		twice := max(end-p.At, 0)
		if int64(len(p.Data)) <= twice {
			continue
		}
		if gap := p.At - end; gap > 0 {
			all = fmt.Appendf(all, "\n... %d bytes were not kept ...\n", gap)
		}
		all = append(all, p.Data[twice:]...)
		end = p.At + int64(len(p.Data))
	}
	return all, run, nil
}
