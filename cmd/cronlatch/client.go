package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/migrations"
)

// withTarget opens the database, brings an empty one to the schema, and calls f. Its context lasts as long as the
// command's patience.
func (a *app) withTarget(ctx context.Context, target database.Target, f func(ctx context.Context, db *database.DB) error) error {
	db, err := database.Open(target, database.Options{AppName: "cronlatch client", MaxConns: 2, RenewConns: 1, StatementTimeout: a.Patience})
	if err != nil {
		return &failure{code: exitConfig, err: err}
	}
	calls, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	if err = whileBusy(calls, func(ctx context.Context) error { return migrateEmpty(ctx, db) }); err == nil {
		err = f(calls, db)
	}
	return errors.Join(a.explain(calls, target, err), db.Close())
}

// withDatabase is withTarget for the database that flags, environment and file name.
func (a *app) withDatabase(ctx context.Context, f func(ctx context.Context, db *database.DB) error) error {
	target, err := a.target()
	if err != nil {
		return err
	}
	return a.withTarget(ctx, target, f)
}

// explain makes a sentence of a database that cannot be reached in time. calls is the context of the calls: when the
// user ended it, that is what happened.
func (*app) explain(calls context.Context, target database.Target, err error) error {
	switch {
	case err == nil || errors.Is(calls.Err(), context.Canceled):
		return err
	case errors.Is(calls.Err(), context.DeadlineExceeded), database.Unavailable(err), database.Retryable(err), errors.Is(err, context.DeadlineExceeded):
		if _, ok := errors.AsType[*failure](err); ok {
			return err
		}
		return fail(exitUnavailable, "the database %s cannot be reached: %w", target, err).
			withHint("%s", cmp.Or(database.Remedy(err), "is it running? --database-url or DATABASE_URL names another"))
	default:
		return err
	}
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
	empty, err := isEmpty(ctx, db)
	if err != nil {
		return err
	}
	if empty {
		if err := migrations.Up(ctx, db.Main); err != nil {
			return fmt.Errorf("preparing the empty database: %w", err)
		}
	}
	// Only now: another first client may have migrated it since isEmpty looked.
	if err = migrations.Check(ctx, db.Main); errors.Is(err, migrations.ErrPending) {
		return &failure{code: exitFailure, err: err, hint: "`cronlatch migrate up` brings it to this version"}
	}
	return err
}

// isEmpty reports whether nothing was ever migrated.
func isEmpty(ctx context.Context, db *database.DB) (bool, error) {
	list, err := migrations.Status(ctx, db.Main)
	return err == nil && len(list) > 0 && list[0].AppliedAt == nil, err
}
