package executor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
)

// execute runs the transaction. It is READ COMMITTED on PostgreSQL (package database sees to that) and rolled back when
// ctx ends before COMMIT was sent.
func (x *transaction) execute(ctx context.Context, db *database.DB, t *jobs.Task) error {
	tx, err := db.Main.DB.BeginTx(database.WithTimeout(ctx, controlTimeout), nil)
	if err != nil {
		return &beginError{err}
	}
	defer func() { _ = tx.Rollback() }() // of a transaction that is over: nothing
	if err := x.checkLock(ctx, tx, pgLook); err != nil {
		return err
	}
	if x.target.Kind == database.Postgres {
		if _, err := tx.ExecContext(ctx, pgSettings); err != nil {
			return &beginError{err}
		}
	}
	for i, statement := range x.statements {
		if err := x.statement(ctx, tx, t, statement); err != nil {
			return &statementError{number: i + 1, word: firstWord(statement), err: err}
		}
	}
	return x.commit(ctx, tx, t)
}

// statement executes one. It is prepared because a server prepares one statement only: what the text was taken apart into
// cannot be more than that, a COMMIT in the middle included.
func (x *transaction) statement(ctx context.Context, tx *sql.Tx, t *jobs.Task, text string) (err error) {
	if x.target.Kind == database.Postgres {
		left := t.Left()
		if left <= 0 {
			return jobs.ErrLockLost
		}
		if _, err := tx.ExecContext(ctx, pgTimeout(left)); err != nil {
			return fmt.Errorf("limiting its time: %w", err)
		}
		ctx = database.WithTimeout(ctx, left+controlTimeout)
	}
	prepared, err := tx.PrepareContext(ctx, text) //nolint:forbidigo // see above; it is behind the guard, and its connection is closed with the run
	if err != nil {
		return err
	}
	defer func() {
		if cerr := prepared.Close(); err == nil {
			err = cerr
		}
	}()
	result, err := prepared.ExecContext(ctx)
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("counting its rows: %w", err)
	}
	_, _ = fmt.Fprintf(t, "%s: %s\n", firstWord(text), count(rows))
	return nil
}

func count(rows int64) string {
	if rows == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", rows)
}

// commit looks at the lock again, and from here on keeps it: what was done is stored while nobody else can have it.
func (x *transaction) commit(ctx context.Context, tx *sql.Tx, t *jobs.Task) error {
	if x.target.Kind == database.Postgres { // the timeout that the last statement had may be long
		if _, err := tx.ExecContext(ctx, pgTimeout(controlTimeout)); err != nil {
			return fmt.Errorf("preparing the commit: %w", err)
		}
	}
	if err := x.checkLock(ctx, tx, pgLock); err != nil {
		return err
	}
	if t.Left() <= 0 { // on another database this clock is all there is
		return jobs.ErrLockLost
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	_, _ = fmt.Fprintln(t, "committed")
	return nil
}

// checkLock is jobs.ErrLockLost on the database of the locks when the run's lock is no longer there with its token.
func (x *transaction) checkLock(ctx context.Context, tx *sql.Tx, query string) error {
	if !x.own() {
		return nil
	}
	if x.target.Kind == database.SQLite {
		query = sqliteLock
	}
	var found int
	err := tx.QueryRowContext(ctx, query, x.a.Run.Resource, x.a.Run.Owner, x.a.Run.FencingToken).Scan(&found)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w with the fencing token %d: nothing is stored", jobs.ErrLockLost, x.a.Run.FencingToken)
	case err != nil:
		return fmt.Errorf("looking at the run's lock: %w", err)
	}
	return nil
}
