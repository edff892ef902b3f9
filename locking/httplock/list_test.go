package httplock_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// manyLocks is a server with locks n/0000 to n/0349, and a count of the pages that were asked for.
func manyLocks(t *testing.T) (h http.Handler, all []string, pages *int) {
	t.Helper()
	m := lockingtest.NewMemory(bootClock)
	var reqs []locking.AcquireRequest
	for i := range 350 {
		all = append(all, fmt.Sprintf("n/%04d", i))
		reqs = append(reqs, locking.AcquireRequest{Resource: all[i], Owner: "A", TTL: time.Hour})
	}
	_, err := m.Acquire(t.Context(), reqs)
	require.NoError(t, err)
	pages = new(int)
	api := httpapi.New(httpapi.Options{Locks: m})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*pages++
		api.ServeHTTP(w, r)
	}), all, pages
}

func namesOf(rows []locking.Record) (out []string) {
	for i := range rows {
		out = append(out, rows[i].Resource)
	}
	return out
}

func TestListIsOfAnyLength(t *testing.T) {
	t.Parallel()
	h, all, pages := manyLocks(t)
	c := serve(t, h)
	for _, limit := range []int{1, 99, 100, 101, 350, 1000} {
		rows, err := c.List(t.Context(), locking.ListFilter{Limit: limit})
		require.NoError(t, err)
		assert.Equal(t, all[:min(limit, 350)], namesOf(rows))
	}
	*pages = 0
	rows, err := c.List(t.Context(), locking.ListFilter{Limit: 1000})
	require.NoError(t, err)
	assert.Len(t, rows, 350)
	assert.Equal(t, 4, *pages)
}

// Going on after the last name costs one page each, as long as the client knows the list; another client finds the place.
func TestListGoesOn(t *testing.T) {
	t.Parallel()
	h, all, pages := manyLocks(t)
	c := serve(t, h)
	var got []string
	f := locking.ListFilter{Limit: 50}
	for {
		rows, err := c.List(t.Context(), f)
		require.NoError(t, err)
		if len(rows) == 0 {
			break
		}
		got = append(got, namesOf(rows)...)
		f.After = got[len(got)-1]
	}
	assert.Equal(t, all, got)
	assert.LessOrEqual(t, *pages, 7+4, "the page after the last one is looked for from the start")

	for _, after := range []string{"n/0000", "n/0049", "n/0099", "n/0149x", "n/0349", "o", "a"} {
		for _, limit := range []int{1, 60, 1000} {
			rows, err := serve(t, h).List(t.Context(), locking.ListFilter{After: after, Limit: limit})
			require.NoError(t, err)
			var want []string
			for _, name := range all {
				if name > after && len(want) < limit {
					want = append(want, name)
				}
			}
			assert.Equal(t, want, namesOf(rows), "%d after %s", limit, after)
		}
	}
}

func TestAListWithoutEndIsAnError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"locks":[` + aLock + `],"next_cursor":"again"}`, `{"locks":[],"next_cursor":"on"}`, `{"next_cursor":"on"}`} {
		_, err := serve(t, answering(http.StatusOK, plainJSON, body)).List(t.Context(), locking.ListFilter{Limit: 1000, After: "z"})
		require.Error(t, err)
	}
}
