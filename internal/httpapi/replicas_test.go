package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// replica adds a process that was heard of some time ago.
func (g *runsRig) replica(name, nonce string, ago time.Duration) {
	g.Helper()
	at := dbtime.Arg(g.db.Main.Dialect().Name(), time.Now().Add(-ago))
	g.exec("INSERT INTO replicas (name, boot_nonce, host, pid, version, definitions_hash, capacity, joined_at, seen_at) "+
		"VALUES (?, ?, 'h', 1, 'v', 'd', 4, ?, ?)", name, nonce, at, at)
}

func TestDrainOverTheAPI(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		g.replica("a", "one", 0)
		g.replica("b", "two", 0)
		g.replica("b", "three", time.Minute)
		admin := func(path, body string) wire.ReplicaList {
			w := g.as("admin", http.MethodPost, path, body)
			require.Equal(g, http.StatusOK, w.Code, w.Body.String())
			return decode[wire.ReplicaList](g.T, w)
		}
		states := func() (s []string) {
			for _, r := range got[wire.ReplicaList](g, "/replicas").Replicas {
				s = append(s, r.Name+" "+r.State)
			}
			return s
		}
		assert.Equal(g, []string{"a up", "b up", "b silent"}, states())
		a := admin("/replicas/a/drain", `{"reason": "kernel"}`).Replicas
		require.Len(g, a, 1)
		assert.Equal(g, []any{"kernel", "root", "draining", false}, []any{a[0].Drain.Reason, a[0].Drain.By, a[0].State, a[0].Draining})
		assert.Len(g, admin("/replicas/b/drain", `{}`).Replicas, 2, "whoever has the name")
		assert.Equal(g, []string{"a draining", "b draining", "b silent"}, states())
		assert.Nil(g, admin("/replicas/a/undrain", `{}`).Replicas[0].Drain)
		assert.Equal(g, []string{"a up", "b draining", "b silent"}, states())

		g.replica("primary", "four", 0)
		p := g.refused(g.as("admin", http.MethodPost, "/replicas/primray/drain", `{}`), http.StatusNotFound, "not_found")
		assert.Contains(g, p["detail"], `did you mean "primary"?`)
		g.refused(g.as("admin", http.MethodPost, "/replicas/a/undrain", `{"reason": "x"}`), http.StatusBadRequest, "malformed")
		g.refused(g.as("admin", http.MethodPost, "/replicas/a/drain", `{"reason": 1}`), http.StatusUnprocessableEntity, "invalid")
		assertDrainLines(g)
	})
}

// assertDrainLines: each request is a row for each process and a line, with who and why.
func assertDrainLines(g *runsRig) {
	rows := got[wire.AuditPage](g, "/audit?action=replica.*").Entries
	require.Len(g, rows, 4)
	first := rows[3]
	assert.Equal(g, []string{"replica.drain", "root", "a", "kernel"}, []string{first.Action, first.ActorID, *first.Replica, *first.Reason})
	var lines []string
	for _, l := range g.lines() {
		if l["target"] != nil {
			lines = append(lines, fmt.Sprint(l["event.action"], " ", l["event.outcome"], " ", l["target"], " ", l["actor.id"], " ", l["reason"]))
		}
	}
	assert.Equal(g, []string{
		"replica.drain success a root kernel", "replica.drain success b root <nil>", "replica.undrain success a root <nil>",
		"replica.drain failure primray root <nil>",
	}, lines)
}

func TestTheAuditOverTheAPI(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		before := got[wire.AuditPage](g, "/audit").Now
		for i := range 5 {
			did[wire.PausedList](g, "/jobs/hand/pause", fmt.Sprintf(`{"reason": "%d"}`, i))
		}
		first := got[wire.AuditPage](g, "/audit?limit=2&job=hand&action=job.*&actor=o&since="+before.Format(time.RFC3339Nano))
		require.Len(g, first.Entries, 2)
		assert.Equal(g, "4", *first.Entries[0].Reason)
		did[wire.PausedList](g, "/jobs/hand/pause", `{"reason": "new"}`)
		var reasons []string
		for page := first; page.NextCursor != ""; {
			page = got[wire.AuditPage](g, "/audit?limit=2&job=hand&cursor="+page.NextCursor)
			for _, e := range page.Entries {
				reasons = append(reasons, *e.Reason)
			}
		}
		assert.Equal(g, []string{"2", "1", "0"}, reasons, "a new row moves no other one")
		assert.Empty(g, got[wire.AuditPage](g, "/audit?run_id=1").Entries)
		assert.Empty(g, got[wire.AuditPage](g, "/audit?until=2020-01-01T00:00:00Z").Entries)
		for _, bad := range []string{"limit=0", "limit=1001", "run_id=0", "since=yesterday", "cursor=%21", "job=", "actor=%00"} {
			g.refused(g.as("viewer", http.MethodGet, "/audit?"+bad, ""), http.StatusUnprocessableEntity, "invalid")
		}
		g.refused(g.as("viewer", http.MethodGet, "/audit?jbo=x", ""), http.StatusBadRequest, "query")
	})
}

// Whoever has the configuration read again is a row of the audit; the answer does not depend on it.
func TestReloadsAreRows(t *testing.T) {
	t.Parallel()
	rejects := false
	g := newRunsRig(t, dbtest.SQLite(t), nil)
	g.rig = newRig(t, func(o *httpapi.Options) {
		withAuth(o)
		o.Fleet = &httpapi.Fleet{DB: g.db.Main, TTL: time.Minute}
		o.Reload = func(context.Context, string) (httpapi.Reloaded, error) {
			if rejects {
				return httpapi.Reloaded{}, &httpapi.RejectedError{Errors: []httpapi.ConfigError{{Code: "x", Message: "y", Field: "z"}}}
			}
			return httpapi.Reloaded{Added: []string{"j"}, Hash: `h"h`}, nil
		}
	})
	assert.Equal(t, http.StatusOK, g.as("admin", http.MethodPost, reloadPath, "").Code)
	rejects = true
	g.refused(g.as("admin", http.MethodPost, reloadPath, ""), http.StatusUnprocessableEntity, "config")
	rows := got[wire.AuditPage](g, "/audit").Entries
	require.Len(t, rows, 2)
	assert.Equal(t, []string{"config.reject", "failure", "root"}, []string{rows[0].Action, rows[0].Outcome, rows[0].ActorID})
	assert.Equal(t, []string{"config.load", "success", "root"}, []string{rows[1].Action, rows[1].Outcome, rows[1].ActorID})
	assert.JSONEq(t, `{"definitions": "h\"h", "added": 1, "removed": 0, "changed": 0}`, string(rows[1].Detail))
}
