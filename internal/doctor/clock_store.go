package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/dbtime"
)

// sampleClock compares the clocks a few times. The quickest answer counts: its instant is known best.
func sampleClock(ctx context.Context, db bun.IDB, kind database.Kind) (c clockFacts, err error) {
	query := postgresClock
	if kind == database.SQLite {
		query = sqliteClock
	}
	const samples = 7
	var least, most time.Duration
	for i := range samples {
		var now dbtime.Time
		sent := time.Now()
		if err := db.NewRaw(query).Scan(ctx, &now); err != nil {
			return c, fmt.Errorf("reading the database's clock: %w", err)
		}
		trip := time.Since(sent)
		offset := now.Sub(sent.Add(trip / 2))
		if i == 0 {
			least, most, c.Offset, c.Trip = offset, offset, offset, trip
		}
		if trip < c.Trip {
			c.Offset, c.Trip = offset, trip
		}
		least, most = min(least, offset), max(most, offset)
	}
	c.Jitter = most - least
	return c, nil
}
