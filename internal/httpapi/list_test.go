package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
)

type pageJSON struct {
	Locks      []lockJSON `json:"locks"`
	NextCursor *string    `json:"next_cursor"`
}

// pages reads a list to its end.
func (g *rig) pages(query string, headers ...string) (names []string, sizes []int) {
	g.Helper()
	at := "/locks?" + query
	for {
		w := g.ask(http.MethodGet, at, "", headers...)
		require.Equal(g, http.StatusOK, w.Code, w.Body.String())
		page := decode[pageJSON](g.T, w)
		sizes = append(sizes, len(page.Locks))
		for i := range page.Locks {
			names = append(names, page.Locks[i].Resource)
		}
		if page.NextCursor == nil {
			return names, sizes
		}
		at = "/locks?" + query + "&cursor=" + *page.NextCursor
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) { t.Parallel(); pagesThroughAll(newRig(t, nil)) })
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		store, err := locking.NewStore(db.Main)
		require.NoError(t, err)
		pagesThroughAll(newRig(t, func(o *httpapi.Options) { o.Locks = store }))
	})
}

// The order is that of the bytes, whatever the database's collation; the last page has no cursor, also when it is full.
func pagesThroughAll(g *rig) {
	want := []string{"B", "a", "a/b", "a~", "b", "é", "\U0001F980"}
	for _, name := range want {
		g.mustAcquire(name, "A")
	}
	g.mustAcquire("other", "O")
	for limit, sizes := range map[int][]int{1: {1, 1, 1, 1, 1, 1, 1}, 3: {3, 3, 1}, 7: {7}, 1000: {7}} {
		names, got := g.pages(fmt.Sprintf("owner=A&limit=%d", limit))
		assert.Equal(g, want, names)
		assert.Equal(g, sizes, got, "limit %d", limit)
	}
	names, _ := g.pages("prefix=a")
	assert.Equal(g, []string{"a", "a/b", "a~"}, names)
	names, _ = g.pages("prefix=a&limit=1&state=held&owner=%20A%20")
	assert.Equal(g, []string{"a", "a/b", "a~"}, names)
	names, sizes := g.pages("prefix=none")
	assert.Empty(g, names)
	assert.Equal(g, []int{0}, sizes)
	names, _ = g.pages("")
	assert.Len(g, names, 8)
	names, _ = g.pages("state=expired")
	assert.Empty(g, names)
}

// Locks that come and go between two pages move no other one.
func TestPagesWhileLocksComeAndGo(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, name := range []string{"a", "b", "c", "d"} {
		g.mustAcquire(name, "A")
	}
	first := decode[pageJSON](t, g.ask(http.MethodGet, "/locks?limit=2", ""))
	require.NotNil(t, first.NextCursor)
	for _, gone := range []string{"a", "b"} {
		require.Equal(t, http.StatusNoContent, g.ask(http.MethodDelete, path(gone), `{"owner": "A"}`).Code)
	}
	names, _ := g.pages("limit=2&cursor=" + *first.NextCursor)
	assert.Equal(t, []string{"c", "d"}, names)
}

func TestALockersListIsItsOwn(t *testing.T) {
	t.Parallel()
	g := newRig(t, withAuth)
	for _, name := range []string{"team/a", "team/b", "team", "teams", "other"} {
		g.mustAcquire(name, "A", "Authorization", "Bearer admin")
	}
	for query, want := range map[string][]string{
		"":                 {"team/a", "team/b"},
		"prefix=":          {"team/a", "team/b"},
		"prefix=te":        {"team/a", "team/b"},
		"prefix=team/":     {"team/a", "team/b"},
		"prefix=team/b":    {"team/b"},
		"prefix=other":     nil,
		"prefix=teams":     nil,
		"cursor=dGVhbS9h":  {"team/b"}, // after "team/a"
		"cursor=emVicmE":   nil,        // after "zebra"
		"cursor=YWJj":      {"team/a", "team/b"},
		"owner=A&prefix=t": {"team/a", "team/b"},
	} {
		var names []string
		for _, l := range decode[pageJSON](t, g.ask(http.MethodGet, "/locks?"+query, "", "Authorization", "Bearer locker")).Locks {
			names = append(names, l.Resource)
		}
		assert.Equal(t, want, names, query)
	}
	paged, _ := g.pages("limit=1", "Authorization", "Bearer locker")
	assert.Equal(t, []string{"team/a", "team/b"}, paged)
	names, _ := g.pages("", "Authorization", "Bearer viewer")
	assert.Len(t, names, 5)
}

func TestListQueries(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for query, field := range map[string]string{
		"limits=1": "limits", "Limit=1": "Limit", "limit=1&limit=2": "limit", "x": "x", "access_token=cl_x": "access_token", "=1": "",
	} {
		p := g.refused(g.ask(http.MethodGet, "/locks?"+query, ""), http.StatusBadRequest, "query")
		assert.Contains(t, fmt.Sprint(p["errors"]), "field:"+field, query)
	}
	for _, query := range []string{"a;b", "limit=%zz", "limit=1;state=held"} {
		g.refused(g.ask(http.MethodGet, "/locks?"+query, ""), http.StatusBadRequest, "query")
	}
	for query, fields := range map[string]int{
		"limit=0": 1, "limit=1001": 1, "limit=": 1, "limit=01": 1, "limit=%2B1": 1, "limit=1e2": 1, "limit=99999999999999999999": 1,
		"state=": 1, "state=HELD": 1, "owner=": 1, "owner=%20": 1, "owner=a%00": 1, "prefix=%00": 1, "prefix=%ff": 1,
		"cursor=": 1, "cursor=%2A": 1, "cursor=YWJ": 1, "cursor=YWJj=": 1, "cursor=YX": 1, "cursor=AA": 1,
		"limit=0&state=x&owner=&cursor=!&prefix=%00": 5,
	} {
		p := g.refused(g.ask(http.MethodGet, "/locks?"+query, ""), http.StatusUnprocessableEntity, "invalid")
		assert.Len(t, p["errors"], fields, query)
	}
	assert.Contains(t, g.ask(http.MethodGet, "/locks?stat=held", "").Body.String(), `did you mean \"state\"?`)
}

func TestOnlyListsHaveAQuery(t *testing.T) {
	t.Parallel()
	g := newRig(t, withFleet(t))
	for _, op := range g.spec.operations(t) {
		if op.public {
			continue
		}
		g.refused(g.ask(op.method, pathOf(op, "x")+"?limt=1", goodBody(op)), http.StatusBadRequest, "query")
	}
}

// A page of large locks is shorter than its limit, and goes on where it stopped.
func TestAPageIsBounded(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	metadata := json.RawMessage(`{"x": "` + strings.Repeat("x", locking.MaxMetadataBytes-16) + `"}`)
	var want []string
	for i := range 300 {
		name := fmt.Sprintf("%03d", i)
		_, err := g.store.Acquire(t.Context(), []locking.AcquireRequest{{Resource: name, Owner: "A", TTL: time.Hour, Metadata: metadata}})
		require.NoError(t, err)
		want = append(want, name)
	}
	names, sizes := g.pages("limit=1000")
	assert.Equal(t, want, names)
	require.Len(t, sizes, 2)
	assert.Greater(t, sizes[0], 200)
}
