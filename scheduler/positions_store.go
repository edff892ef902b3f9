package scheduler

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// PositionRow is up to where a schedule of a job was planned. The rows of schedules that were replaced, and of jobs that
// were removed, stay: a schedule that comes back goes on from there.
type PositionRow struct {
	Job      string      `bun:"job"`
	Hash     string      `bun:"schedule_hash"` // of jobs.Schedule
	Position dbtime.Time `bun:"position"`
}

// maxPositions bounds a list: it is read into memory.
const maxPositions = 100_000

// Positions lists how far schedules were planned, by the job's name, the one planned furthest first.
func Positions(ctx context.Context, db bun.IDB) ([]PositionRow, error) {
	var rows []PositionRow
	const query = `SELECT job, schedule_hash, position FROM plan_positions ORDER BY job, position DESC LIMIT ?`
	if err := db.NewRaw(query, maxPositions).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("reading the positions: %w", err)
	}
	return rows, nil
}
