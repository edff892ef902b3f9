package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/locking"
)

func TestLocksShow(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w, rig := connected(t, url), newLockRig(t, url)
		w.run(t, "locks", "show", "a").says(t, exitFailure, "", "cronlatch: the lock \"a\" is free\n")
		w.run(t, "locks", "show", "..").says(t, exitUsage, "", "cronlatch: resource: name must not be \"..\": clients and proxies take it for a step in a path\n")
		assert.Equal(t, exitUsage, w.run(t, "locks", "show").code)

		record := rig.take(t, "a", time.Hour)
		w.run(t, "locks", "show", "a", "-o", "name").says(t, exitOK, "a\n", "")
		shown := decode[map[string]any](t, w.run(t, "locks", "show", "a", "-o", "json").out)
		assert.Equal(t, "o1", shown["owner"])
		assert.InDelta(t, record.FencingToken, shown["fencing_token"], 0)
		assert.Equal(t, map[string]any{"team": "ops"}, shown["metadata"])

		got := w.run(t, "locks", "show", "a")
		assert.Equal(t, exitOK, got.code)
		const at = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`
		assert.Regexp(t, `^The lock "a" is held by \{"team":"ops"\}\.\n`+
			`It was acquired at `+at+` \(\S+( ago)?\)\.\n`+
			`Unless it is renewed, it ends at `+at+` \(in (1h|59m\d+s)\)\.\n`+
			`Its fencing token is `+formatToken(record.FencingToken)+`, and its owner is o1\.\n`+
			`Its metadata is \{"team":"ops"\}\.\n$`, got.out)

		_, err := rig.store.Renew(t.Context(), []locking.Claim{{Resource: "a", Owner: "o1", TTL: time.Hour}})
		require.NoError(t, err)
		assert.Contains(t, w.run(t, "locks", "show", "a").out, "It was renewed at ")
		rig.force(t, "a")
		assert.Contains(t, w.run(t, "locks", "show", "a").out, "It was force-released at ")
	})
}

func TestLocksRelease(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w, rig := connected(t, url), newLockRig(t, url)
		w.run(t, "locks", "release", "a", "--owner", "o1").says(t, exitFailure, "", "cronlatch: the lock \"a\" is not held; there is nothing to release\n")
		token := formatToken(rig.take(t, "a", time.Hour).FencingToken)
		w.run(t, "locks", "release", "a", "--owner", "o2").says(t, exitDenied, "",
			"cronlatch: the lock \"a\" is held by another owner, or by this one with another token of a server\n"+
				"cronlatch: `cronlatch locks show a` shows the holder; --force takes the lock away\n")
		w.run(t, "locks", "release", "a", "--owner", "o1", "--fencing-token", "999999").says(t, exitFailure, "",
			"cronlatch: 999999 is not the fencing token of the lock \"a\" (any more); nothing was released\n"+
				"cronlatch: `cronlatch locks show a` shows the holder\n")
		w.run(t, "locks", "release", "a", "--owner", "o1", "--fencing-token", token).says(t, exitOK, "", "cronlatch: the lock \"a\" is released\n")
		rig.isFree(t, "a")
	})
}

func TestLocksForceRelease(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w, rig := connected(t, url), newLockRig(t, url)
		force := func(more ...string) answer {
			return w.run(t, append([]string{"locks", "release", "a", "--force", "--reason", "build3 is gone"}, more...)...)
		}
		force("--yes").says(t, exitFailure, "", "cronlatch: the lock \"a\" is free\n")
		first := rig.take(t, "a", time.Hour)

		refused := force()
		assert.Equal(t, exitUsage, refused.code)
		assert.Contains(t, refused.errors, "cronlatch: The lock \"a\" is held by {\"team\":\"ops\"}.\n")
		assert.Contains(t, refused.errors, "cronlatch: nobody can be asked without a terminal; nothing was released\ncronlatch: --yes goes on without asking\n")
		stale := force("--yes", "--fencing-token", "999999")
		assert.Equal(t, exitFailure, stale.code)
		assert.Contains(t, stale.errors, "999999 is not the fencing token")
		_, err := rig.store.Renew(t.Context(), []locking.Claim{{Resource: "a", Owner: "o1", TTL: time.Hour}})
		require.NoError(t, err, "nothing happened so far")

		gentle := force("--yes", "--fencing-token", formatToken(first.FencingToken))
		assert.Equal(t, exitOK, gentle.code)
		assert.Regexp(t, `cronlatch: the lock "a" can no longer be renewed; others can have it at \S+ \S+Z at the latest\n$`, gentle.errors)
		results, err := rig.store.Renew(t.Context(), []locking.Claim{{Resource: "a", Owner: "o1", TTL: time.Hour}})
		require.NoError(t, err)
		require.ErrorIs(t, results[0].Err, locking.ErrLost)
		_, err = rig.store.Get(t.Context(), "a")
		require.NoError(t, err, "others wait until the holder has stopped")

		at := force("--yes", "--immediate")
		assert.Equal(t, exitOK, at.code)
		assert.Contains(t, at.errors, "cronlatch: the lock \"a\" is free\n")
		rig.isFree(t, "a")
		assertForcesAudited(t, url)
	})
}

// assertForcesAudited wants a row for each of the two, with who and why.
func assertForcesAudited(t *testing.T, url string) {
	t.Helper()
	var rows []struct {
		ActorID, Resource, Reason string
	}
	query := "SELECT actor_id, resource, reason FROM audit_log WHERE action = 'lock.force_release' ORDER BY id"
	require.NoError(t, dbtest.Open(t, url).Main.NewRaw(query).Scan(t.Context(), &rows))
	require.Len(t, rows, 2)
	for _, row := range rows {
		assert.Equal(t, requester(), row.ActorID)
		assert.Equal(t, "a", row.Resource)
		assert.Equal(t, "build3 is gone", row.Reason)
	}
}

func TestLocksReleaseIsOneOrTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, flags := range [][]string{
		{},
		{"--owner", "o", "--force", "--reason", "r"},
		{"--force"},
		{"--force", "--reason", " "},
		{"--owner", "o", "--yes"},
		{"--owner", "o", "--immediate"},
		{"--owner", "o", "--reason", "r"},
		{"--owner", "o", "--fencing-token", "0"},
		{"--owner", "o", "--fencing-token", "x"},
	} {
		assert.Equal(t, exitUsage, w.run(t, append([]string{"locks", "release", "a"}, flags...)...).code, "%q", flags)
	}
}

func TestHolderNames(t *testing.T) {
	t.Parallel()
	for metadata, want := range map[string]string{
		`{"command":"deploy.sh","host":"build3","pid":17,"user":"ci"}`:                 "deploy.sh (pid 17) of ci@build3",
		`{"command":"deploy.sh","host":"build3"}`:                                      "deploy.sh on build3",
		`{"replica":"b","host":"h","pid":1,"job":"backup:db","run_id":17,"attempt":1}`: "run 17 of the job backup:db on replica b",
		`{"command":17}`: `{"command":17}`,
		`{}`:             "the owner o1",
	} {
		assert.Equal(t, want, holderName(&locking.Record{Owner: "o1", Metadata: []byte(metadata)}))
	}
	assert.Equal(t, "somebody who left no name", holderName(&locking.Record{}))
	assert.Equal(t, "üü...", cut("üüü", 5))
}

func TestWords(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"db/orders": "db/orders", "report:2026-05": "report:2026-05", "a b": "'a b'", "it's": `'it'\''s'`, "-x": "'-x'", "ü": "'ü'", "$HOME": "'$HOME'",
	} {
		assert.Equal(t, want, word(name))
	}
}
