package main

import (
	"context"
	"errors"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/httplock"
)

// lockBackend is where the locks are: a database, or a server before it.
type lockBackend struct {
	store   locking.Store
	options []locking.Option // of a locker on it
	where   string           // "the database postgres://...", for messages
	db      *database.DB     // nil: a server
	remote  bool
}

// withLocks opens what the flag, the environment or the file names, and calls f; its context lasts as long as the
// command's patience.
func (a *app) withLocks(ctx context.Context, flag string, f func(ctx context.Context, b lockBackend) error) error {
	s, err := a.server(flag)
	if err != nil {
		return err
	}
	if s == nil {
		return a.withDatabase(ctx, func(ctx context.Context, db *database.DB) error {
			store, err := locking.NewStore(db.Main)
			if err != nil {
				return err
			}
			b := lockBackend{store: store, where: "the database " + db.Target.String(), db: db, options: []locking.Option{locking.RenewOn(db.Renew)}}
			return settledLock(f(ctx, b))
		})
	}
	client, err := httplock.New(httplock.Options{URL: s.URL.String(), Token: s.Token, HTTP: s.Client})
	if err != nil {
		return usage("%w", err)
	}
	defer client.Close()
	calls, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	b := lockBackend{store: client, where: "the server " + s.String(), remote: true}
	return b.explain(ctx, f(calls, b))
}

// explain finds the exit code of a server's answer, or of none.
func (b lockBackend) explain(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*failure](err); ok || err == nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return fail(exitInterrupted, "interrupted")
	case errors.Is(err, httplock.ErrDenied):
		return denied(b.where, err)
	case errors.Is(err, locking.ErrInvalid):
		return invalidLock(err)
	case errors.Is(err, locking.ErrNotFound), errors.Is(err, locking.ErrNotOwner), errors.Is(err, locking.ErrStaleToken):
		return &failure{code: exitFailure, err: err}
	case database.Denied(err):
		return classify(err)
	default:
		return b.unreachable(err)
	}
}

func denied(where string, err error) *failure {
	return fail(exitDenied, "%s does not permit it: %w", where, err).
		withHint("CRONLATCH_TOKEN is the token that is sent; `cronlatch token list` on the server's side shows what it may do")
}

// unreachable is for a server or a database; a database mostly says why.
func (b lockBackend) unreachable(err error) *failure {
	f := unreachable(b.where, err)
	if remedy := database.Remedy(err); remedy != "" && !b.remote {
		f.hint = remedy
	}
	return f
}

func unreachable(where string, err error) *failure {
	return fail(exitUnavailable, "%s cannot be reached: %w", where, err).
		withHint("is it running? --server and --database-url name others")
}
