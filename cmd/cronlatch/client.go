package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/migrations"
)

// patience is how long a client command waits for the database before it ends with exitUnavailable. A daemon waits;
// a person or a script wants to know.
const patience = 5 * time.Second

// withTarget opens the database, brings an empty one to the schema, and calls f. Its context lasts as long as the
// command's patience.
func (a *app) withTarget(ctx context.Context, target database.Target, f func(ctx context.Context, db *database.DB) error) error {
	db, err := database.Open(target, database.Options{AppName: "cronlatch client", MaxConns: 2, RenewConns: 1, StatementTimeout: patience})
	if err != nil {
		return &failure{code: exitConfig, err: err}
	}
	calls, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err = whileBusy(calls, func(ctx context.Context) error { return migrateEmpty(ctx, db) }); err == nil {
		err = f(calls, db)
	}
	return errors.Join(a.explain(ctx, target, err), db.Close())
}

// withDatabase is withTarget for the database that flags, environment and file name.
func (a *app) withDatabase(ctx context.Context, f func(ctx context.Context, db *database.DB) error) error {
	target, err := a.target()
	if err != nil {
		return err
	}
	return a.withTarget(ctx, target, f)
}

// explain makes a sentence of a database that cannot be reached. The end of the user's patience is not one.
func (*app) explain(ctx context.Context, target database.Target, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if database.Unavailable(err) || database.Retryable(err) || errors.Is(err, context.DeadlineExceeded) {
		return fail(exitUnavailable, "the database %s cannot be reached: %w", target, err).
			withHint("is it running? --database-url or DATABASE_URL names another")
	}
	return err
}

// busyPause is between two tries on a database that others keep busy: several first clients of one SQLite file.
const busyPause = 100 * time.Millisecond

// whileBusy tries again as long as others are in the way, until ctx ends.
func whileBusy(ctx context.Context, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if !database.Retryable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(busyPause):
		}
	}
}

// migrateEmpty migrates a database that is empty. An older schema is left to a deliberate `migrate up` or to a daemon.
func migrateEmpty(ctx context.Context, db *database.DB) error {
	err := migrations.Check(ctx, db.Main)
	if !errors.Is(err, migrations.ErrPending) {
		return err
	}
	list, serr := migrations.Status(ctx, db.Main)
	if serr != nil {
		return serr
	}
	if len(list) > 0 && list[0].AppliedAt != nil {
		return &failure{code: exitFailure, err: err, hint: "`cronlatch migrate up` brings it to this version"}
	}
	if err := migrations.Up(ctx, db.Main); err != nil {
		return fmt.Errorf("preparing the empty database: %w", err)
	}
	return nil
}
