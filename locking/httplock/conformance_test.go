package httplock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/httplock"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// bootClock tells the time without time.Now, which is forbidden around locks.
func bootClock() time.Time { return time.Unix(1_700_000_000, 0).Add(boottime.Now()) }

func TestClientConforms(t *testing.T) {
	t.Parallel()
	lockingtest.Run(t, func(t *testing.T) lockingtest.Backend {
		t.Helper()
		m := lockingtest.NewMemory(bootClock)
		c := serve(t, httpapi.New(httpapi.Options{Locks: m}))
		return lockingtest.Backend{
			Store: c, Behind: m,
			Age:    func(_ *testing.T, resource string, d time.Duration) { m.Age(resource, d) },
			Reopen: func(t *testing.T) locking.Store { t.Helper(); return serve(t, httpapi.New(httpapi.Options{Locks: m})) },
		}
	})
}

// byToken lets everybody in under the name that is the token.
type byToken struct{}

func (byToken) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	switch token {
	case "alice", "bob":
		return auth.Principal{ID: token, Role: auth.Locker, Prefix: "team/"}, nil
	case "root":
		return auth.Principal{ID: token, Role: auth.Admin}, nil
	}
	return auth.Principal{}, auth.ErrUnauthenticated
}

func as(token string) func(o *httplock.Options) {
	return func(o *httplock.Options) { o.Token = token }
}

func TestALockBelongsToThePrincipalToo(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{Locks: lockingtest.NewMemory(bootClock), Auth: byToken{}})
	alice, bob, root := serve(t, h, as("alice")), serve(t, h, as("bob")), serve(t, h, as("root"))
	ctx := t.Context()
	req := []locking.AcquireRequest{{Resource: "team/a", Owner: "A", TTL: time.Minute}}
	res, err := alice.Acquire(ctx, req)
	require.NoError(t, err)
	require.True(t, res[0].Acquired)
	claim := []locking.Claim{{Resource: "team/a", Owner: "A", TTL: time.Minute, FencingToken: res[0].Record.FencingToken}}

	res, err = bob.Acquire(ctx, req)
	require.NoError(t, err)
	assert.False(t, res[0].Acquired)
	renewed, err := bob.Renew(ctx, claim)
	require.NoError(t, err)
	assert.Equal(t, locking.ErrLost, renewed[0].Err)
	released, err := bob.Release(ctx, claim)
	require.NoError(t, err)
	assert.Equal(t, locking.ErrNotOwner, released[0].Err)

	_, err = bob.ForceRelease(ctx, locking.Force{Resource: "team/a", FencingToken: claim[0].FencingToken, Reason: "mine"})
	require.ErrorIs(t, err, httplock.ErrDenied)
	_, err = root.ForceRelease(ctx, locking.Force{Resource: "team/a", FencingToken: claim[0].FencingToken, Reason: "stuck"})
	require.NoError(t, err)
	renewed, err = alice.Renew(ctx, claim)
	require.NoError(t, err)
	assert.Equal(t, locking.ErrLost, renewed[0].Err)
}

func TestWhoIsNotPermittedIsToldSo(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{Locks: lockingtest.NewMemory(bootClock), Auth: byToken{}})
	for token, resource := range map[string]string{"": "team/a", "mallory": "team/a", "alice": "other/a"} {
		c := serve(t, h, as(token))
		_, err := c.Acquire(t.Context(), []locking.AcquireRequest{{Resource: resource, Owner: "A", TTL: time.Minute}})
		require.ErrorIs(t, err, httplock.ErrDenied, token)
		require.NotErrorIs(t, err, locking.ErrInvalid)
		var status *httplock.StatusError
		require.ErrorAs(t, err, &status)
		assert.NotEmpty(t, status.RequestID)
		_, err = c.Renew(t.Context(), []locking.Claim{{Resource: resource, Owner: "A", TTL: time.Minute}})
		require.ErrorIs(t, err, httplock.ErrDenied, "a revoked token is no loss: the lock lives until its expiry")
		require.NotErrorIs(t, err, locking.ErrLost)
		_, err = c.Release(t.Context(), []locking.Claim{{Resource: resource, Owner: "A"}})
		require.ErrorIs(t, err, httplock.ErrDenied)
		require.NotErrorIs(t, err, locking.ErrNotOwner, "403 is two things")
		_, err = c.Get(t.Context(), resource)
		require.ErrorIs(t, err, httplock.ErrDenied)
		if token != "" {
			assert.NotContains(t, err.Error(), token)
		}
	}
}
