package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/dbtime"
)

func TestReplicasAreVisible(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		for _, name := range []string{"b", "a", "left"} {
			u := b.unit("hash of "+name, named("j", nil)(b.t))
			u.who = identity{Replica: name, Host: "h", PID: 7, Nonce: name}
			require.NoError(b.t, u.beat(b.ctx(), false))
			if name == "b" {
				require.NoError(b.t, u.beat(b.ctx(), true))
			}
			if name == "a" {
				u.Reload(nil, "another hash")
				require.NoError(b.t, u.adopt(b.ctx()))
				require.NoError(b.t, u.beat(b.ctx(), false))
			}
			if name == "left" {
				require.NoError(b.t, u.leave(b.ctx()))
			}
		}
		rows, err := Replicas(b.ctx(), b.db, time.Hour)
		require.NoError(b.t, err)
		require.Len(b.t, rows, 2)
		assert.Equal(b.t, []string{"a", "b"}, []string{rows[0].Name, rows[1].Name})
		a := rows[0]
		assert.Equal(b.t, []any{"a", "h", 7, "v", "another hash", 10, 0, false}, []any{a.Nonce, a.Host, a.PID, a.Version, a.Hash, a.Capacity, a.Running, a.Draining})
		assert.True(b.t, rows[1].Draining)
		assert.Less(b.t, a.Silence(), time.Minute)
		none, err := Replicas(b.ctx(), b.db, 0)
		require.NoError(b.t, err)
		assert.Empty(b.t, none)
	})
}

// A replica that was away has two lifetimes and is one replica.
func TestALifetimeIsNoReplica(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		u := b.unit("one")
		require.NoError(b.t, u.beat(b.ctx(), false))
		u.o.TTL = 0 // the next beat comes too late
		require.NoError(b.t, u.beat(b.ctx(), false))
		rows, err := Replicas(b.ctx(), b.db, time.Hour)
		require.NoError(b.t, err)
		assert.Len(b.t, rows, 1)
		var lifetimes int
		require.NoError(b.t, b.db.NewRaw("SELECT count(*) FROM replicas").Scan(b.ctx(), &lifetimes))
		assert.Equal(b.t, 2, lifetimes)
	})
}

// The lifetime that ended last before an outage is among those that the outage is told by.
func TestTheLifetimeBeforeAnOutage(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		now := b.clock()
		for _, ago := range []time.Duration{5 * time.Hour, 3 * time.Hour, time.Hour} { // each lived for an hour
			_, err := b.db.NewRaw("INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, joined_at, seen_at) "+
				"VALUES ('a', 'n', 'h', 1, 'v', 'd', 1, ?, ?)", dbtime.Arg(b.d, now.Add(-ago-time.Hour)), dbtime.Arg(b.d, now.Add(-ago))).Exec(b.ctx())
			require.NoError(b.t, err)
		}
		spans, err := b.lifetimes(b.ctx(), b.db, now.Add(-150*time.Minute), now)
		require.NoError(b.t, err)
		require.Len(b.t, spans, 2)
		assert.Equal(b.t, now.Add(-3*time.Hour).UnixMilli(), spans[0].Until.UnixMilli())
		assert.Equal(b.t, now.Add(-time.Hour).UnixMilli(), spans[1].Until.UnixMilli())
		spans, err = b.lifetimes(b.ctx(), b.db, now.Add(-7*time.Hour), now.Add(-350*time.Minute))
		require.NoError(b.t, err)
		assert.Len(b.t, spans, 1, "none before it is fine")
	})
}
