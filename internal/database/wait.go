package database

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
)

const (
	firstPause  = 100 * time.Millisecond
	longPause   = 5 * time.Second
	pingTimeout = 5 * time.Second
	logEvery    = 30 * time.Second
)

// Wait returns nil once a statement succeeded, and tries again until then, with pauses that grow from 100 ms to 5 s.
// It logs the first failure, then one every 30 s, and the recovery. It gives up when ctx ends, or at once when waiting
// cannot help (ErrRefused, ErrFileReplaced). A wrong password or a database that does not exist yet is waited for:
// whoever starts everything at once creates them in any order.
func (db *DB) Wait(ctx context.Context, log *zap.Logger) error {
	if log == nil {
		log = zap.NewNop()
	}
	ping := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		var one int
		return db.Main.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	}
	return wait(ctx, log.With(zap.Stringer("database", db.Target)), ping)
}

func wait(ctx context.Context, log *zap.Logger, ping func(context.Context) error) error {
	start := time.Now()
	var logged time.Time
	pause := firstPause
	for {
		err := ping(ctx)
		if err == nil {
			if !logged.IsZero() {
				log.Info("the database is back", zap.Duration("after", time.Since(start)))
			}
			return nil
		}
		if errors.Is(err, ErrRefused) || errors.Is(err, ErrFileReplaced) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the database: %w", errors.Join(context.Cause(ctx), err))
		}
		if logged.IsZero() || time.Since(logged) >= logEvery {
			log.Warn("waiting for the database", zap.Error(err), zap.Duration("since", time.Since(start)))
			logged = time.Now()
		}
		if !sleep(ctx, jitter(pause)) {
			return fmt.Errorf("waiting for the database: %w", errors.Join(context.Cause(ctx), err))
		}
		pause = min(pause*2, longPause)
	}
}

// jitter spreads a pause over its upper half, so that replicas that lost the database together do not return together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
