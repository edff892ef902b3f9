package httpapi_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
)

// The contract, once on the store in memory and on both databases.
func TestContract(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		contract(t, func(t *testing.T) *rig { t.Helper(); return newRig(t, nil) })
	})
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		store, err := locking.NewStore(db.Main)
		require.NoError(t, err)
		contract(t, func(t *testing.T) *rig {
			t.Helper()
			return newRig(t, func(o *httpapi.Options) { o.Locks = store })
		})
	})
}

// contract runs every case on a name of its own; the names of escapesNames are no case's.
func contract(t *testing.T, open func(t *testing.T) *rig) {
	t.Helper()
	for name, f := range map[string]func(g *rig, name string){
		"acquire, get, release":   acquiresAndReleases,
		"held":                    saysWhoHolds,
		"same owner again":        extends,
		"renews":                  renews,
		"renew refused":           refusesRenewal,
		"release refused":         refusesRelease,
		"expired":                 expires,
		"force":                   forces,
		"force at once":           forcesAtOnce,
		"metadata byte for byte":  keepsMetadata,
		"names that need escapes": escapesNames,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(open(t), name)
		})
	}
}

func acquiresAndReleases(g *rig, name string) {
	got := g.mustAcquire(name, "A")
	assert.Equal(g, name, got.Resource)
	assert.Equal(g, "A", got.Owner)
	assert.Positive(g, got.FencingToken)
	assert.WithinDuration(g, got.AcquiredAt.Add(600*time.Second), got.ExpiresAt, time.Second)
	assert.LessOrEqual(g, got.RemainingMS, int64(600_000))
	assert.Greater(g, got.RemainingMS, int64(500_000))
	assert.JSONEq(g, `{}`, string(got.Metadata))

	w := g.ask(http.MethodGet, path(name), "")
	require.Equal(g, http.StatusOK, w.Code)
	read := decode[lockJSON](g.T, w)
	assert.LessOrEqual(g, read.RemainingMS, got.RemainingMS)
	read.RemainingMS = got.RemainingMS
	assert.Equal(g, got, read)
	head := g.ask(http.MethodHead, path(name), "")
	assert.Equal(g, http.StatusOK, head.Code)

	assert.Equal(g, http.StatusNoContent, g.ask(http.MethodDelete, path(name), `{"owner": "A"}`).Code)
	g.refused(g.ask(http.MethodDelete, path(name), `{"owner": "A"}`), http.StatusNotFound, "not_found")
	g.refused(g.ask(http.MethodGet, path(name), ""), http.StatusNotFound, "not_found")
	assert.Greater(g, g.mustAcquire(name, "A").FencingToken, got.FencingToken, "a token is never used again")
}

func saysWhoHolds(g *rig, name string) {
	w := g.ask(http.MethodPost, path(name), `{"owner": "A", "ttl_seconds": 600, "metadata": {"who": "me"}}`)
	a := decode[acquireJSON](g.T, w).Lock
	require.NotNil(g, a)
	w = g.ask(http.MethodPost, path(name), `{"owner": "B", "ttl_seconds": 600}`)
	require.Equal(g, http.StatusOK, w.Code)
	got := decode[acquireJSON](g.T, w)
	assert.False(g, got.Acquired)
	assert.Equal(g, name, got.Resource)
	assert.Equal(g, strconv.FormatInt(got.RetryAfter, 10), w.Header().Get("Retry-After"))
	assert.InDelta(g, 600, got.RetryAfter, 60)
	assert.Equal(g, &lockJSON{AcquiredAt: a.AcquiredAt, ExpiresAt: a.ExpiresAt, Metadata: []byte(`{"who": "me"}`)}, got.Holder)
	assert.NotContains(g, w.Body.String(), `"owner"`, "the owner is the key")
	assert.NotContains(g, w.Body.String(), "fencing_token")
}

func extends(g *rig, name string) {
	first := g.mustAcquire(name, "A")
	w := g.ask(http.MethodPost, path(name), `{"owner": "\u2003A\n ", "ttl_seconds": 30}`)
	again := decode[acquireJSON](g.T, w)
	require.True(g, again.Acquired, "white space around an owner does not count")
	assert.Equal(g, first.FencingToken, again.Lock.FencingToken)
	assert.Equal(g, "A", again.Lock.Owner)
	assert.False(g, again.Lock.AcquiredAt.Before(first.AcquiredAt))
	assert.WithinDuration(g, again.Lock.AcquiredAt.Add(30*time.Second), again.Lock.ExpiresAt, time.Second)
}

func renews(g *rig, name string) {
	a := g.mustAcquire(name, "A")
	for _, body := range []string{
		`{"owner": "A", "ttl_seconds": 1200}`, `{"owner": "A", "ttl_seconds": 60}`,
		fmt.Sprintf(`{"owner": "A", "ttl_seconds": 60, "fencing_token": %d}`, a.FencingToken),
	} {
		w := g.ask(http.MethodPost, path(name, "/renew"), body)
		require.Equal(g, http.StatusOK, w.Code, w.Body.String())
		got := decode[lockJSON](g.T, w)
		assert.Equal(g, a.FencingToken, got.FencingToken)
		assert.Equal(g, a.AcquiredAt, got.AcquiredAt, "a renewal moves only the expiry")
		if strings.Contains(body, "1200") {
			assert.True(g, got.ExpiresAt.After(a.ExpiresAt))
		} else {
			assert.True(g, got.ExpiresAt.Before(a.ExpiresAt), "a renewal may shorten")
		}
	}
}

func refusesRenewal(g *rig, name string) {
	g.refused(g.ask(http.MethodPost, path(name, "/renew"), `{"owner": "A", "ttl_seconds": 60}`), http.StatusConflict, "not_renewable")
	a := g.mustAcquire(name, "A")
	for _, body := range []string{
		`{"owner": "B", "ttl_seconds": 60}`, `{"owner": "a", "ttl_seconds": 60}`,
		fmt.Sprintf(`{"owner": "A", "ttl_seconds": 60, "fencing_token": %d}`, a.FencingToken+1),
	} {
		g.refused(g.ask(http.MethodPost, path(name, "/renew"), body), http.StatusConflict, "not_renewable")
	}
	assert.Equal(g, a.ExpiresAt, decode[lockJSON](g.T, g.ask(http.MethodGet, path(name), "")).ExpiresAt)
}

func refusesRelease(g *rig, name string) {
	a := g.mustAcquire(name, "A")
	g.refused(g.ask(http.MethodDelete, path(name), `{"owner": "B"}`), http.StatusForbidden, "not_owner")
	g.refused(g.ask(http.MethodDelete, path(name), fmt.Sprintf(`{"owner": "A", "fencing_token": %d}`, a.FencingToken+1)), http.StatusConflict, "stale_token")
	assert.Equal(g, http.StatusOK, g.ask(http.MethodGet, path(name), "").Code)
	w := g.ask(http.MethodDelete, path(name), fmt.Sprintf(`{"owner": "A", "fencing_token": %d}`, a.FencingToken))
	assert.Equal(g, http.StatusNoContent, w.Code)
}

// expires takes a lock by the store, which knows shorter lives than the API.
func expires(g *rig, name string) {
	old, err := g.store.Acquire(g.Context(), []locking.AcquireRequest{{Resource: name, Owner: "A", TTL: locking.MinTTL}})
	require.NoError(g, err)
	require.Eventually(g, func() bool {
		_, err := g.store.Get(g.Context(), name)
		return err != nil
	}, 10*time.Second, 5*time.Millisecond)
	g.refused(g.ask(http.MethodGet, path(name), ""), http.StatusNotFound, "not_found")
	g.refused(g.ask(http.MethodDelete, path(name), `{"owner": "A"}`), http.StatusNotFound, "not_found")
	g.refused(g.ask(http.MethodPost, path(name, "/renew"), `{"owner": "A", "ttl_seconds": 60}`), http.StatusConflict, "not_renewable")
	listed := decode[pageJSON](g.T, g.ask(http.MethodGet, "/locks?state=expired&prefix="+name, ""))
	require.Len(g, listed.Locks, 1)
	assert.Zero(g, listed.Locks[0].RemainingMS)
	b := g.mustAcquire(name, "B")
	assert.Greater(g, b.FencingToken, old[0].Record.FencingToken)
	g.refused(g.ask(http.MethodDelete, path(name), `{"owner": "A"}`), http.StatusForbidden, "not_owner")
}

func forces(g *rig, name string) {
	a := g.mustAcquire(name, "A")
	force := func(token int64) string {
		return fmt.Sprintf(`{"fencing_token": %d, "reason": "gone"}`, token)
	}
	g.refused(g.ask(http.MethodPost, path(name, "/force-release"), force(a.FencingToken+1)), http.StatusConflict, "stale_token")
	require.Equal(g, http.StatusNoContent, g.ask(http.MethodPost, path(name, "/force-release"), force(a.FencingToken)).Code)
	g.refused(g.ask(http.MethodPost, path(name, "/renew"), `{"owner": "A", "ttl_seconds": 60}`), http.StatusConflict, "not_renewable")
	b := g.acquire(name, "B")
	assert.False(g, b.Acquired, "the name stays taken, so that the holder stops first")
	assert.Equal(g, a.ExpiresAt, b.Holder.ExpiresAt)
	assert.Equal(g, http.StatusNoContent, g.ask(http.MethodDelete, path(name), `{"owner": "A"}`).Code, "the holder says that it stopped")
	g.mustAcquire(name, "B")
	g.refused(g.ask(http.MethodPost, path("none", "/force-release"), force(1)), http.StatusNotFound, "not_found")
}

func forcesAtOnce(g *rig, name string) {
	a := g.mustAcquire(name, "A")
	body := fmt.Sprintf(`{"fencing_token": %d, "reason": "gone", "immediate": true}`, a.FencingToken)
	require.Equal(g, http.StatusNoContent, g.ask(http.MethodPost, path(name, "/force-release"), body).Code)
	assert.Greater(g, g.mustAcquire(name, "B").FencingToken, a.FencingToken)
}

func keepsMetadata(g *rig, name string) {
	const given = `{"z": 1.50, "a": [1e3, "\u00e9<&>"],  "deep": {"y": {}} , "n":null}`
	w := g.ask(http.MethodPost, path(name), `{"owner": "A", "metadata": `+given+`, "ttl_seconds": 60}`)
	require.Equal(g, http.StatusOK, w.Code, w.Body.String())
	assert.Contains(g, w.Body.String(), `"metadata":`+given+`}`)
	for _, w := range []string{
		g.ask(http.MethodGet, path(name), "").Body.String(), g.ask(http.MethodGet, "/locks?owner=A&prefix=metadata", "").Body.String(),
		g.ask(http.MethodPost, path(name), `{"owner": "B", "ttl_seconds": 60}`).Body.String(),
	} {
		assert.Contains(g, w, `"metadata":`+given+`}`)
	}
}

// A slash, a dot, a per cent sign in a name are the name's, wherever in the path they are.
func escapesNames(g *rig, prefix string) {
	for _, name := range []string{"/", "a/b", "a//b", "../x", "./x", "x/..", "50%", "%2F", "%", "a?b#c", "Zürich 🦀", "...", "renew", "a/renew", ";", "\"<>", " "} {
		at := "/locks/" + strings.NewReplacer("%", "%25", "/", "%2F", "?", "%3F", "#", "%23", " ", "%20", "\"", "%22", "<", "%3C", ">", "%3E").Replace(name)
		w := g.ask(http.MethodPost, at, `{"owner": "A", "ttl_seconds": 60, "metadata": {"test": "`+prefix+`"}}`)
		require.Equal(g, http.StatusOK, w.Code, name)
		assert.Equal(g, name, decode[acquireJSON](g.T, w).Lock.Resource)
		w = g.ask(http.MethodPost, at+"/renew", `{"owner": "A", "ttl_seconds": 60}`)
		require.Equal(g, http.StatusOK, w.Code, name)
		r, err := g.store.Get(g.Context(), name)
		require.NoError(g, err)
		assert.Equal(g, name, r.Resource)
		require.Equal(g, http.StatusNoContent, g.ask(http.MethodDelete, at, `{"owner": "A"}`).Code)
	}
}

// The times on a clock that only the test moves: Retry-After is rounded up and counts the grace; what remains is
// rounded down; a lock that expired is free when the grace is over, not before.
func TestTimes(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g := newRig(t, func(o *httpapi.Options) { o.Grace = grace })
			w := g.ask(http.MethodPost, path("x"), `{"owner": "A", "ttl_seconds": 30}`)
			a := decode[acquireJSON](g.T, w).Lock
			assert.Equal(t, int64(30_000), a.RemainingMS)
			time.Sleep(12*time.Second + 600*time.Millisecond + 1)
			assert.Equal(t, int64(17_399), decode[lockJSON](g.T, g.ask(http.MethodGet, path("x"), "")).RemainingMS)
			assert.Equal(t, 18+int64(grace/time.Second), g.acquire("x", "B").RetryAfter)
			time.Sleep(17*time.Second + 400*time.Millisecond - 2)
			assert.Equal(t, max(1, int64(grace/time.Second)+1), g.acquire("x", "B").RetryAfter)
			assert.Equal(t, int64(0), decode[lockJSON](g.T, g.ask(http.MethodGet, path("x"), "")).RemainingMS)
			time.Sleep(time.Nanosecond)
			g.refused(g.ask(http.MethodGet, path("x"), ""), http.StatusNotFound, "not_found")
			if grace > 0 {
				time.Sleep(grace - 1)
				assert.Equal(t, int64(1), g.acquire("x", "B").RetryAfter)
				time.Sleep(time.Nanosecond)
			}
			assert.Greater(t, g.mustAcquire("x", "B").FencingToken, a.FencingToken)
		})
	}
}

func TestTimesHaveMicroseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, nil)
		time.Sleep(120 * time.Microsecond)
		w := g.ask(http.MethodPost, path("x"), `{"owner": "A", "ttl_seconds": 86400}`)
		assert.Contains(t, w.Body.String(), `"acquired_at":"2000-01-01T00:00:00.000120Z","expires_at":"2000-01-02T00:00:00.000120Z","remaining_ms":86400000,`)
	})
}

// What the daemon cannot do is no path.
func TestWithoutAStoreThereAreNoLocks(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{})
	for _, r := range httpapi.RouteTable() {
		w := ask(h, request(t, r.Method, pathOf(operation{path: r.Path}, "x")))
		always := r.Path == "/healthz" || r.Path == "/readyz" || r.Path == "/openapi.json"
		assert.Equal(t, always, w.Code != http.StatusNotFound, r.Path)
	}
}
