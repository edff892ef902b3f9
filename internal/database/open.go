package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"go.uber.org/zap"
)

const (
	defaultMaxConns         = 10
	defaultRenewConns       = 2
	defaultStatementTimeout = 10 * time.Second
	defaultRenewTimeout     = 3 * time.Second
	connLifetime            = time.Hour       // so that a pool follows a name that moved to another server
	connIdleTime            = 5 * time.Minute // so that a burst does not keep its connections
)

// Options are the limits of a DB. The zero value of each field is its default.
type Options struct {
	AppName          string        // application_name in pg_stat_activity; "cronlatch"
	Logger           *zap.Logger   // for warnings about the target; none
	MaxConns         int           // connections of Main; 10 (SQLite: always 1)
	RenewConns       int           // connections of Renew; 2 (SQLite: always 1)
	StatementTimeout time.Duration // longest call on Main; 10s
	RenewTimeout     time.Duration // longest call on Renew; 3s
}

func (o Options) withDefaults() Options {
	if o.AppName == "" {
		o.AppName = "cronlatch"
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.MaxConns <= 0 {
		o.MaxConns = defaultMaxConns
	}
	if o.RenewConns <= 0 {
		o.RenewConns = defaultRenewConns
	}
	if o.StatementTimeout <= 0 {
		o.StatementTimeout = defaultStatementTimeout
	}
	if o.RenewTimeout <= 0 {
		o.RenewTimeout = defaultRenewTimeout
	}
	return o
}

// DB is an open database: two pools on the same target. Close it when done.
type DB struct {
	Main   *bun.DB // for everything but renewals
	Renew  *bun.DB // for renewals alone: a saturated Main loses no lock
	Kind   Kind
	Target Target

	file   *sqliteFile // nil on PostgreSQL
	pooled atomic.Bool
}

// Open makes the pools. It does not connect: the first statement does, or Wait. An error is a target that cannot work,
// such as a certificate file that is not there.
func Open(t Target, o Options) (*DB, error) {
	o = o.withDefaults()
	switch t.Kind {
	case Postgres:
		return openPostgres(t, o)
	case SQLite:
		return openSQLite(t), nil
	default:
		return nil, errors.New("opening the database: the target is empty (use Parse or Resolve)")
	}
}

func openPostgres(t Target, o Options) (*DB, error) {
	for _, h := range t.pg.hosts {
		if _, err := t.pg.tls.config(h); err != nil {
			return nil, fmt.Errorf("opening the database: %w", err)
		}
		if !h.local() && !h.mode.verified() {
			o.Logger.Warn("the connection to the database is not verified: whoever is on the way can read and change it; "+
				"use sslmode=verify-full", zap.Stringer("host", h), zap.String("sslmode", string(h.mode)))
		}
	}
	app := t.pg.appName
	if app == "" {
		app = o.AppName
	}
	db := &DB{Kind: Postgres, Target: t}
	pool := func(conns int, limit time.Duration) *bun.DB {
		db := sql.OpenDB(watched(&connector{target: t.pg, app: app, limit: limit, pooled: db.meetPooler(o.Logger)}))
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(conns)
		db.SetConnMaxLifetime(connLifetime)
		db.SetConnMaxIdleTime(connIdleTime)
		return bun.NewDB(db, postgresDialect{pgdialect.New()})
	}
	db.Main, db.Renew = pool(o.MaxConns, o.StatementTimeout), pool(o.RenewConns, o.RenewTimeout)
	return db, nil
}

// meetPooler is called with each connection that leads to a pooler; the log hears of the first.
func (db *DB) meetPooler(log *zap.Logger) func() {
	return func() {
		if !db.pooled.Swap(true) {
			log.Info("the database is behind a connection pooler: each transaction brings its own settings, and nothing is prepared",
				zap.Stringer("database", db.Target))
		}
	}
}

// Pooled reports whether a connection so far led to a pooler (PgBouncer and others) instead of a PostgreSQL server.
func (db *DB) Pooled() bool { return db.pooled.Load() }

func openSQLite(t Target) *DB {
	file := &sqliteFile{path: t.Path}
	pool := func() *bun.DB {
		db := sql.OpenDB(watched(file))
		db.SetMaxOpenConns(1) // SQLite has one writer; a second connection would only wait in busy_timeout
		db.SetMaxIdleConns(1)
		return bun.NewDB(db, sqliteDialect{sqlitedialect.New()})
	}
	return &DB{Main: pool(), Renew: pool(), Kind: SQLite, Target: t, file: file}
}

// Close closes both pools. Statements that are running end first.
func (db *DB) Close() error {
	return errors.Join(db.Main.Close(), db.Renew.Close())
}

// CheckFile reports ErrFileReplaced when SQLite's file is no longer the one at its path: other replicas would then use
// another file, and both would own every lock. It is nil before the first connection, and always on PostgreSQL.
func (db *DB) CheckFile(ctx context.Context) error {
	if db.file == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return db.file.check()
}
