package auth

import (
	"context"
	"sync"
	"time"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

const (
	// Freshness is how old what is known of the table may be: a revocation holds everywhere so long after it was written.
	Freshness = time.Second
	// loadTimeout bounds one reading of the table; requests wait for it.
	loadTimeout = 2 * time.Second
)

// Loader reads the table of tokens.
type Loader interface {
	Load(ctx context.Context) (Snapshot, error)
}

// Tokens knows all tokens: those of the configuration and those of the table. It is safe for use by several at once.
type Tokens struct {
	configured map[string]Entry
	table      Loader
	clock      func() time.Duration // goes on in suspend
	wall       func() time.Time     // for a database that never answered

	mu     sync.Mutex
	last   *view         // nil before the first answer
	tried  time.Duration // when the newest reading began, if it went wrong
	failed bool          // the newest reading went wrong
	flight *flight       // the reading under way; nil is none
}

// view is a snapshot as requests need it.
type view struct {
	began   time.Duration // before the table was asked
	now     time.Time
	entries map[string]Entry
}

// flight is one reading that several wait for.
type flight struct {
	began time.Duration
	done  chan struct{}
}

// NewTokens knows the configured tokens and those of the table. An entry of the table whose id is configured counts for
// its revocation only.
func NewTokens(configured []Entry, table Loader) *Tokens {
	t := &Tokens{configured: make(map[string]Entry, len(configured)), table: table, clock: boottime.Now, wall: time.Now}
	for _, e := range configured {
		t.configured[e.ID] = e
	}
	return t
}

// Authenticate finds the principal of a token: ErrUnauthenticated when it is none (or expired or revoked), and
// ErrUnavailable when only the table could tell, and it has never been read.
//
// What it knows of the table is at most Freshness old when the database answers. While it does not, the last answer
// counts: an outage locks nobody out who was in, and lets in nobody whose revocation was seen.
func (t *Tokens) Authenticate(ctx context.Context, token string) (Principal, error) {
	id, ok := ID(token)
	if !ok {
		return Principal{}, ErrUnauthenticated
	}
	v, err := t.view(ctx)
	if err != nil {
		return Principal{}, err
	}
	e, known := t.configured[id]
	now := t.wall()
	if v != nil {
		now = v.now.Add(t.clock() - v.began) // by the database's clock, as everything else
		row, inTable := v.entries[id]
		if !known {
			e, known = row, inTable
		}
		if inTable && !row.RevokedAt.IsZero() {
			e.RevokedAt = row.RevokedAt
		}
	} else if !known {
		return Principal{}, ErrUnavailable
	}
	// The hashes are compared in any case: the time must not tell which ids there are.
	if !sameHash(token, e.Hash) || !known || !e.valid(now) {
		return Principal{}, ErrUnauthenticated
	}
	return Principal{ID: e.ID, Role: e.Role, Prefix: e.Prefix}, nil
}

func (e Entry) valid(now time.Time) bool {
	return e.RevokedAt.IsZero() && (e.ExpiresAt.IsZero() || now.Before(e.ExpiresAt)) && e.Role.valid()
}

// view is what is known of the table, fresh when the database answers; nil when it never did. The error is that of ctx.
func (t *Tokens) view(ctx context.Context) (*view, error) {
	asked := t.clock()
	for {
		t.mu.Lock()
		if t.settled(asked) {
			v := t.last
			t.mu.Unlock()
			return v, nil
		}
		f := t.flight
		if f == nil {
			f = &flight{began: t.clock(), done: make(chan struct{})}
			t.flight = f
			t.mu.Unlock()
			t.load(ctx, f)
			continue
		}
		t.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// settled reports whether a request that came at asked can be answered: what is known is young enough, or the newest
// attempt to know more has failed just now.
func (t *Tokens) settled(asked time.Duration) bool {
	if t.last != nil && t.last.began > asked-Freshness {
		return true
	}
	return t.failed && t.tried > asked-Freshness
}

// load reads the table once, for all who wait: a client that goes away does not end it.
func (t *Tokens) load(ctx context.Context, f *flight) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
	defer cancel()
	snapshot, err := t.table.Load(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	defer close(f.done)
	t.flight, t.failed, t.tried = nil, err != nil, f.began
	if err != nil {
		return // the API is asked next, and says what is wrong with the database
	}
	v := &view{began: f.began, now: snapshot.Now, entries: make(map[string]Entry, len(snapshot.Entries))}
	for _, e := range snapshot.Entries {
		v.entries[e.ID] = e
	}
	t.last = v
}
