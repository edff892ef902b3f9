package auth

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

func openStore(t *testing.T, db *database.DB) *Store {
	t.Helper()
	s, err := OpenStore(db.Main)
	require.NoError(t, err)
	return s
}

func load(t *testing.T, s *Store) Snapshot {
	t.Helper()
	snapshot, err := s.Load(t.Context())
	require.NoError(t, err)
	return snapshot
}

type auditRow struct{ Action, ActorType, ActorID, Outcome, TokenID string }

// auditRows are the rows about tokens, in order.
func auditRows(t *testing.T, db *database.DB) []auditRow {
	t.Helper()
	var rows []auditRow
	require.NoError(t, db.Main.NewRaw(`SELECT action, actor_type, actor_id, outcome, detail ->> 'token_id' AS token_id FROM audit_log ORDER BY id`).
		Scan(t.Context(), &rows))
	return rows
}

func TestStore(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		s := openStore(t, db)
		empty := load(t, s)
		assert.Empty(t, empty.Entries)
		assert.False(t, empty.Now.IsZero(), "the clock is there without a row")

		h := Hash("x")
		require.NoError(t, s.Create(t.Context(), Creation{ID: "ci", Hash: h, Role: Locker, Prefix: "a:", Life: 90 * time.Minute, Actor: "me@here"}))
		require.NoError(t, s.Create(t.Context(), Creation{ID: "board", Hash: Hash("y"), Role: Viewer, Actor: "me@here"}))
		got := load(t, s)
		require.Len(t, got.Entries, 2)
		assert.Equal(t, Entry{ID: "board", Hash: Hash("y"), Role: Viewer, CreatedAt: got.Entries[0].CreatedAt}, got.Entries[0])
		ci := got.Entries[1]
		assert.Equal(t, Entry{ID: "ci", Hash: h, Role: Locker, Prefix: "a:", CreatedAt: ci.CreatedAt, ExpiresAt: ci.CreatedAt.Add(90 * time.Minute)}, ci)
		assert.False(t, ci.CreatedAt.Before(empty.Now), "by the same clock")
		assert.False(t, got.Now.Before(ci.CreatedAt))

		require.ErrorIs(t, s.Create(t.Context(), Creation{ID: "ci", Hash: Hash("z"), Role: Admin}), ErrExists)
		assert.Equal(t, h, load(t, s).Entries[1].Hash, "the first one stays")

		require.NoError(t, s.Revoke(t.Context(), "ci", "you@there"))
		first := load(t, s).Entries[1].RevokedAt
		assert.False(t, first.IsZero())
		require.NoError(t, s.Revoke(t.Context(), "ci", "you@there"))
		assert.Equal(t, first, load(t, s).Entries[1].RevokedAt, "revoked is revoked")

		require.NoError(t, s.Create(t.Context(), Creation{ID: "ci", Hash: Hash("z"), Role: Operator, Replace: true, Actor: "me@here"}))
		again := load(t, s).Entries[1]
		assert.Equal(t, Entry{ID: "ci", Hash: Hash("z"), Role: Operator, CreatedAt: again.CreatedAt}, again, "neither prefix nor end nor revocation is left")

		require.NoError(t, s.Revoke(t.Context(), "configured", "me@here"))
		entries := load(t, s).Entries
		require.Len(t, entries, 3)
		assert.Equal(t, "configured", entries[2].ID)
		assert.Empty(t, entries[2].Hash)
		assert.False(t, entries[2].RevokedAt.IsZero())

		assert.Equal(t, []auditRow{
			{"token.create", "user", "me@here", "success", "ci"},
			{"token.create", "user", "me@here", "success", "board"},
			{"token.revoke", "user", "you@there", "success", "ci"},
			{"token.revoke", "user", "you@there", "success", "ci"},
			{"token.create", "user", "me@here", "success", "ci"},
			{"token.revoke", "user", "me@here", "success", "configured"},
		}, auditRows(t, db), "a refused creation leaves no line")
	})
}

func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	s := openStore(t, db)
	good := Creation{ID: "a", Hash: Hash("x"), Role: Viewer}
	for name, change := range map[string]func(*Creation){
		"id":     func(c *Creation) { c.ID = "A" },
		"hash":   func(c *Creation) { c.Hash = "" },
		"text":   func(c *Creation) { c.Hash = "cl_a_x" },
		"role":   func(c *Creation) { c.Role = "root" },
		"prefix": func(c *Creation) { c.Prefix = "x" },
		"life":   func(c *Creation) { c.Life = -1 },
	} {
		c := good
		change(&c)
		require.Error(t, s.Create(t.Context(), c), name)
	}
	require.ErrorIs(t, s.Revoke(t.Context(), "A", ""), ErrID)
	assert.Empty(t, load(t, s).Entries)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Load(ended)
	require.ErrorContains(t, err, "reading the tokens")
	require.ErrorContains(t, s.Create(ended, good), "creating a token")
	require.ErrorContains(t, s.Revoke(ended, "a", ""), "revoking a token")
}
