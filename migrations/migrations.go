// Package migrations brings a database to the schema that this binary needs, from SQL files embedded in it.
//
// Model: each database has a folder of files named NNNN_name.sql, numbered 1, 2, 3 ... without a gap, with the same
// numbers and names in both folders. The table schema_migrations keeps version, name and SHA-256 of every file that was
// applied. A schema is good when these are exactly the files of the binary.
//
// Guarantees: Up applies everything that is missing in one transaction, together with the marks that it is applied: a
// crash at any point leaves the old schema or the new one. Replicas that start at once apply it once: on PostgreSQL
// they queue for an advisory lock that belongs to the transaction (so it works behind a pooler and a crash frees it), on
// SQLite for the write lock of BEGIN IMMEDIATE. Nothing is written, and no lock taken, when nothing is missing. A schema
// that is newer than the binary (ErrNewer), or made from other files (ErrChanged), is left alone.
//
// Non-guarantees: there is no way back down; restore a backup. A statement that cannot run in a transaction (CREATE INDEX
// CONCURRENTLY) cannot be a migration. Old replicas go on running while a new one migrates, so a file only adds
// (expand); what old replicas use is removed in a later release (contract).
//
// Failure handling: when Up returns an error that is not a server's answer, the outcome is unknown; calling it again is
// always right. The caller decides how long: Up waits for the lock and for the statements until its context ends.
//
// How to test: go test ./migrations, beside a PostgreSQL server (see internal/pgserver).
package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/database"
)

var (
	// ErrNewer says that the schema has migrations that this binary does not know.
	ErrNewer = errors.New("migrations: the schema is newer than this binary")
	// ErrPending says that this binary has migrations that are not applied.
	ErrPending = errors.New("migrations: the schema is older than this binary")
	// ErrChanged says that an applied migration is not the file that this binary has under its number.
	ErrChanged = errors.New("migrations: the schema was made from other files than this binary's")
)

// Migration is one file, applied or not.
type Migration struct {
	Version   int
	Name      string
	AppliedAt *time.Time // by the database's clock, UTC; nil while it is pending
}

// Up applies what is missing. See the package comment.
func Up(ctx context.Context, db *bun.DB) error {
	s, err := schemaOf(db)
	if err != nil {
		return err
	}
	return s.up(ctx, db)
}

// Status lists the binary's migrations, oldest first, followed by those that only the database knows.
func Status(ctx context.Context, db *bun.DB) ([]Migration, error) {
	s, err := schemaOf(db)
	if err != nil {
		return nil, err
	}
	return s.status(ctx, db)
}

// Check returns nil when the schema is exactly the binary's, else ErrNewer, ErrPending or ErrChanged with the facts, or
// the error of asking.
func Check(ctx context.Context, db *bun.DB) error {
	s, err := schemaOf(db)
	if err != nil {
		return err
	}
	return s.check(ctx, db)
}

// schema is what one kind of database should look like, and how to get there.
type schema struct {
	files   []file
	dialect sqlDialect
	// applied is called inside the transaction after each file, so that tests can stop there.
	applied func(file)
}

// sqlDialect is the SQL around the migrations.
type sqlDialect interface {
	// prepare takes the lock that the transaction keeps to its end, and makes the table of marks.
	prepare(ctx context.Context, tx bun.Tx) error
	// marks reads the table of marks, oldest first; none when it does not exist.
	marks(ctx context.Context, db bun.IDB) ([]mark, error)
	// mark writes one.
	mark(ctx context.Context, tx bun.Tx, f file) error
}

// mark is a row of schema_migrations.
type mark struct {
	version        int
	name, checksum string
	appliedAt      time.Time
}

func schemaOf(db *bun.DB) (*schema, error) {
	var d sqlDialect
	switch name := db.Dialect().Name(); name {
	case dialect.PG:
		d = postgres{}
	case dialect.SQLite:
		d = sqlite{}
	default:
		return nil, fmt.Errorf("migrations: no schema for the SQL of %s", name)
	}
	files, err := embedded(db.Dialect().Name())
	return &schema{files: files, dialect: d}, err
}

// longest is how long one statement of a migration may take, or the wait for another replica's migration: until the
// caller's context ends, in practice.
const longest = 24 * time.Hour

func (s *schema) up(ctx context.Context, db *bun.DB) error {
	ctx = database.WithTimeout(ctx, longest)
	for {
		err := s.attempt(ctx, db)
		if err == nil || !database.Retryable(err) {
			return err
		}
		if !pause(ctx) {
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		}
	}
}

func (s *schema) attempt(ctx context.Context, db *bun.DB) error {
	if err := s.check(ctx, db); !errors.Is(err, ErrPending) {
		return err
	}
	if err := db.RunInTx(ctx, nil, s.applyMissing); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	return nil
}

// pause waits before another attempt: on SQLite the other replica's migration may last longer than the busy timeout, and
// making a new file ready for several processes is refused without any wait; on PostgreSQL a changed table may deadlock
// with the work of running replicas. It is false when the context has ended.
func pause(ctx context.Context) bool {
	const between = 100 * time.Millisecond
	timer := time.NewTimer(between)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// applyMissing reads the marks again under the lock: another replica may have been faster.
func (s *schema) applyMissing(ctx context.Context, tx bun.Tx) error {
	if err := s.dialect.prepare(ctx, tx); err != nil {
		return err
	}
	marks, err := s.dialect.marks(ctx, tx)
	if err != nil {
		return err
	}
	if err := compare(s.files, marks); err != nil && !errors.Is(err, ErrPending) {
		return err
	}
	for _, f := range s.files[len(marks):] {
		if err := s.apply(ctx, tx, f); err != nil {
			return fmt.Errorf("applying %s: %w", f, err)
		}
	}
	return nil
}

func (s *schema) apply(ctx context.Context, tx bun.Tx, f file) error {
	// Without arguments bun leaves a question mark in the text alone.
	if _, err := tx.ExecContext(ctx, f.sql); err != nil {
		return err
	}
	if err := s.dialect.mark(ctx, tx, f); err != nil {
		return err
	}
	if s.applied != nil {
		s.applied(f)
	}
	return nil
}

func (s *schema) check(ctx context.Context, db *bun.DB) error {
	marks, err := s.dialect.marks(ctx, db)
	if err != nil {
		return fmt.Errorf("reading the state of the schema: %w", err)
	}
	return compare(s.files, marks)
}

func (s *schema) status(ctx context.Context, db *bun.DB) ([]Migration, error) {
	marks, err := s.dialect.marks(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("reading the state of the schema: %w", err)
	}
	list := make([]Migration, 0, len(s.files))
	for _, m := range marks {
		list = append(list, Migration{Version: m.version, Name: m.name, AppliedAt: &m.appliedAt})
	}
	for _, f := range s.files[min(len(marks), len(s.files)):] {
		list = append(list, Migration{Version: f.version, Name: f.name})
	}
	return list, nil
}

// compare holds the marks against the files. The marks must be a beginning of the files, or ErrChanged and ErrNewer say
// how they differ.
func compare(files []file, marks []mark) error {
	for i, m := range marks[:min(len(marks), len(files))] {
		f := files[i]
		if m.version != f.version {
			return fmt.Errorf("%w: migration %d is missing in schema_migrations although %d is there", ErrChanged, f.version, m.version)
		}
		if m.checksum != f.checksum {
			return fmt.Errorf("%w: migration %s was applied on %s with the checksum %.12s, this binary has %.12s under that number",
				ErrChanged, m, m.appliedAt.Format(time.DateOnly), m.checksum, f.checksum)
		}
	}
	switch {
	case len(marks) > len(files):
		return fmt.Errorf("%w: the database is at migration %s, this binary knows only %d; use the version of cronlatch that migrated it, or a newer one",
			ErrNewer, marks[len(marks)-1], len(files))
	case len(marks) < len(files):
		return fmt.Errorf("%w: %d of its %d migrations are not applied; run cronlatch migrate, or start cronlatch serve",
			ErrPending, len(files)-len(marks), len(files))
	}
	return nil
}

func (m mark) String() string { return label(m.version, m.name) }
