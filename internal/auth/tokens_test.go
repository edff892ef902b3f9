package auth

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// table is a database that answers as the test wants. Its clock is an hour ahead of the replica's.
type table struct {
	mu      sync.Mutex
	entries []Entry
	err     error
	delay   time.Duration
	loads   atomic.Int64
}

func (s *table) Load(ctx context.Context) (Snapshot, error) {
	s.loads.Add(1)
	s.mu.Lock()
	out, err, delay := Snapshot{Now: time.Now().Add(time.Hour), Entries: append([]Entry(nil), s.entries...)}, s.err, s.delay
	s.mu.Unlock()
	select {
	case <-time.After(delay):
		return out, err
	case <-ctx.Done():
		return Snapshot{}, ctx.Err()
	}
}

func (s *table) set(change func(*table)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

var errAway = errors.New("the database is away")

// rig is Tokens in a synctest bubble, with one token in the table and one in the configuration.
type rig struct {
	*Tokens

	table              *table
	stored, configured string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{stored: mustNew(t, "stored"), configured: mustNew(t, "configured")}
	r.table = &table{entries: []Entry{{ID: "stored", Hash: Hash(r.stored), Role: Locker, Prefix: "a:"}}}
	r.Tokens = NewTokens([]Entry{{ID: "configured", Hash: Hash(r.configured), Role: Admin}}, r.table)
	began := time.Now()
	r.clock = func() time.Duration { return time.Since(began) }
	return r
}

func (r *rig) accepts(t *testing.T, token string) Principal {
	t.Helper()
	p, err := r.Authenticate(t.Context(), token)
	require.NoError(t, err)
	return p
}

func (r *rig) refuses(t *testing.T, token string, want error) {
	t.Helper()
	p, err := r.Authenticate(t.Context(), token)
	require.ErrorIs(t, err, want)
	assert.Equal(t, Principal{}, p)
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		assert.Equal(t, Principal{ID: "stored", Role: Locker, Prefix: "a:"}, r.accepts(t, r.stored))
		assert.Equal(t, Principal{ID: "configured", Role: Admin}, r.accepts(t, r.configured))
		r.refuses(t, mustNew(t, "stored"), ErrUnauthenticated)
		r.refuses(t, mustNew(t, "configured"), ErrUnauthenticated)
		r.refuses(t, mustNew(t, "unknown"), ErrUnauthenticated)
		assert.EqualValues(t, 1, r.table.loads.Load(), "one reading for all of them")
		r.refuses(t, "", ErrUnauthenticated)
		r.refuses(t, Hash(r.stored), ErrUnauthenticated)
	})
}

// What is no token at all is refused without asking the database.
func TestNonsenseCostsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, text := range []string{"", "x", "cl_stored_", r.stored + "x"} {
			r.refuses(t, text, ErrUnauthenticated)
		}
		assert.Zero(t, r.table.loads.Load())
	})
}

func TestARevocationHoldsWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.accepts(t, r.stored)
		r.table.set(func(s *table) { s.entries[0].RevokedAt = time.Now() })
		time.Sleep(Freshness)
		r.refuses(t, r.stored, ErrUnauthenticated)
		assert.EqualValues(t, 2, r.table.loads.Load())
	})
}

// Freshness counts from before the question: an answer that was long under way is old when it arrives.
func TestASlowAnswerIsAnOldAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.table.set(func(s *table) { s.delay = 1500 * time.Millisecond })
		var wg sync.WaitGroup
		wg.Go(func() { r.accepts(t, r.stored) }) // the table was read at 0s; the answer comes at 1.5s
		time.Sleep(time.Millisecond)
		r.table.set(func(s *table) { s.entries[0].RevokedAt = time.Now() })
		time.Sleep(1100 * time.Millisecond)
		r.refuses(t, r.stored, ErrUnauthenticated) // asked at 1.1s: what was true at 0s is not enough
		wg.Wait()
	})
}

func TestManyAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.table.set(func(s *table) { s.delay = 100 * time.Millisecond })
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { r.accepts(t, r.stored) })
		}
		wg.Wait()
		assert.EqualValues(t, 1, r.table.loads.Load())
	})
}

func TestTheLastAnswerCountsInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		revoked := mustNew(t, "revoked")
		r.table.entries = append(r.table.entries, Entry{ID: "revoked", Hash: Hash(revoked), Role: Admin, RevokedAt: time.Now()})
		r.accepts(t, r.stored)
		r.table.set(func(s *table) { s.err = errAway })
		time.Sleep(time.Hour)
		r.accepts(t, r.stored)
		r.accepts(t, r.configured)
		r.refuses(t, revoked, ErrUnauthenticated)
		r.refuses(t, mustNew(t, "unknown"), ErrUnauthenticated)
		assert.EqualValues(t, 2, r.table.loads.Load(), "an outage is not made worse: one attempt a second")

		r.table.set(func(s *table) { s.err, s.entries = nil, nil })
		time.Sleep(Freshness)
		r.refuses(t, r.stored, ErrUnauthenticated)
	})
}

func TestBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.table.set(func(s *table) { s.err = errAway })
		r.accepts(t, r.configured)
		r.refuses(t, r.stored, ErrUnavailable)
		r.refuses(t, mustNew(t, "configured"), ErrUnauthenticated)
		assert.EqualValues(t, 1, r.table.loads.Load())
	})
}

func TestABlackHoleIsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.table.set(func(s *table) { s.delay = time.Hour })
		began := time.Now()
		r.refuses(t, r.stored, ErrUnavailable)
		assert.Equal(t, loadTimeout, time.Since(began))
	})
}

// A client that gives up neither waits on nor takes the answer away from the others.
func TestAClientThatGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.table.set(func(s *table) { s.delay = time.Second })
		impatient, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = r.Authenticate(impatient, r.stored) }) // it reads the table
		synctest.Wait()
		wg.Go(func() { r.accepts(t, r.stored) })
		wg.Go(func() {
			_, err := r.Authenticate(impatient, r.stored)
			assert.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		assert.EqualValues(t, 1, r.table.loads.Load())
	})
}

// Tokens end by the database's clock, here an hour ahead, and in between two readings as well.
func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		database := time.Now().Add(time.Hour)
		r.table.entries[0].ExpiresAt = database.Add(500 * time.Millisecond)
		r.Tokens.configured["configured"] = Entry{ID: "configured", Hash: Hash(r.configured), Role: Admin, ExpiresAt: database.Add(700 * time.Millisecond)}
		r.accepts(t, r.stored)
		r.accepts(t, r.configured)
		time.Sleep(499 * time.Millisecond)
		r.accepts(t, r.stored)
		time.Sleep(time.Millisecond)
		r.refuses(t, r.stored, ErrUnauthenticated)
		r.accepts(t, r.configured)
		time.Sleep(200 * time.Millisecond)
		r.refuses(t, r.configured, ErrUnauthenticated)
		assert.EqualValues(t, 1, r.table.loads.Load())
	})
}

func TestExpiryWithoutADatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.table.set(func(s *table) { s.err = errAway })
		r.Tokens.configured["configured"] = Entry{ID: "configured", Hash: Hash(r.configured), Role: Admin, ExpiresAt: time.Now().Add(time.Minute)}
		r.accepts(t, r.configured)
		time.Sleep(time.Minute)
		r.refuses(t, r.configured, ErrUnauthenticated)
	})
}

// The configuration decides what a configured id is; the table can only end it.
func TestTheTableOnlyRevokesWhatIsConfigured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		other := mustNew(t, "configured")
		r.table.entries = []Entry{{ID: "configured", Hash: Hash(other), Role: Viewer, ExpiresAt: time.Now().Add(-time.Hour)}}
		assert.Equal(t, Principal{ID: "configured", Role: Admin}, r.accepts(t, r.configured))
		r.refuses(t, other, ErrUnauthenticated)
		r.table.set(func(s *table) { s.entries = []Entry{{ID: "configured", Role: Viewer, RevokedAt: time.Now()}} })
		time.Sleep(Freshness)
		r.refuses(t, r.configured, ErrUnauthenticated)
	})
}

// A role of a later version is none here.
func TestAnUnknownRole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.table.entries[0].Role = "auditor"
		r.refuses(t, r.stored, ErrUnauthenticated)
	})
}

func TestTokensOnBothDatabases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		s := openStore(t, db)
		token := mustNew(t, "ci")
		require.NoError(t, s.Create(t.Context(), Creation{ID: "ci", Hash: Hash(token), Role: Locker, Life: time.Hour}))
		p, err := NewTokens(nil, s).Authenticate(t.Context(), token)
		require.NoError(t, err)
		assert.Equal(t, Principal{ID: "ci", Role: Locker}, p)

		require.NoError(t, s.Revoke(t.Context(), "ci", "me"))
		_, err = NewTokens(nil, s).Authenticate(t.Context(), token)
		require.ErrorIs(t, err, ErrUnauthenticated)

		replacement := mustNew(t, "ci")
		require.NoError(t, s.Create(t.Context(), Creation{ID: "ci", Hash: Hash(replacement), Role: Viewer, Replace: true}))
		tokens := NewTokens(nil, s)
		_, err = tokens.Authenticate(t.Context(), token)
		require.ErrorIs(t, err, ErrUnauthenticated)
		_, err = tokens.Authenticate(t.Context(), replacement)
		require.NoError(t, err)
	})
}
