package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// Who waits on PostgreSQL listens and says so, and no longer listens when it has the lock. (That a release then notifies
// is tested in package locking.)
func TestLockWaitersHangABell(t *testing.T) {
	t.Parallel()
	url := dbtest.Direct(t, dbtest.PostgresURL(t))
	rig := newLockRig(t, url)
	db := dbtest.Open(t, url).Main
	count := func(query string) (n int) {
		t.Helper()
		require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n))
		return n
	}
	const listening = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN "cronlatch_%'`
	first := rig.shell(t, "a", "note first; while ! [ -e go ]; do sleep 0.01; done")
	rig.noted(t, "first")
	second := rig.shell(t, "a", "note second; while ! [ -e go2 ]; do sleep 0.01; done", "--wait", "1h")
	lockUntil(t, "the second listens", func() bool { return count(listening) == 1 })
	lockUntil(t, "and says so", func() bool {
		return count(`SELECT count(*) FROM lock_waiters WHERE resource = 'a' AND until > now()`) == 1
	})
	rig.goOn(t)
	assert.Zero(t, first.end(t))
	rig.noted(t, "second")
	lockUntil(t, "it no longer listens", func() bool { return count(listening) == 0 })
	second.signal(t, syscall.SIGTERM)
	second.end(t)
}

// A database that is slow for a moment does not leave a waiter without a bell for as long as it waits.
func TestABellIsTriedAgain(t *testing.T) {
	t.Parallel()
	proxy := proxied(t, newLockRig(t, dbtest.Direct(t, dbtest.PostgresURL(t))))
	bell := lockBell{db: dbtest.Open(t, proxy.rig.env[0][len("DATABASE_URL="):])}
	defer bell.close()
	proxy.BlackHole()
	assert.False(t, bell.hang(t.Context(), "a", time.Hour))
	assert.Nil(t, bell.rings())
	proxy.Restore()
	lockUntil(t, "it hangs", func() bool { return bell.hang(t.Context(), "a", time.Hour) })
	assert.NotNil(t, bell.rings())
	assert.False(t, bell.hang(t.Context(), "a", time.Hour), "once is enough")
}
