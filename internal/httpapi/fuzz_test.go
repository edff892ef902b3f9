package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// FuzzLockBodies: what is accepted is stored as it was sent, and what is not is a 4xx that says why.
func FuzzLockBodies(f *testing.F) {
	for _, seed := range []string{
		goodAcquire, `{"owner": "A", "ttl_seconds": 1, "metadata": {"z": 1.50, "a": [1e3, "\u00e9"]}}`, `{"owner": "\ud83e\udd80 ", "ttl_seconds": 86400}`,
		`{"owner":"A","owner":"B","ttl_seconds":1}`, `{"Owner":"A"}`, `{"owner":null,"ttl_seconds":30.0}`, `[]`, `null`, ``, "{\"owner\":\"\xff\"}",
		`{"owner":"A","ttl_seconds":60,"metadata":{"a":"\u0000"}}`, strings.Repeat(`{"metadata":`, 70) + "1" + strings.Repeat("}", 70), goodAcquire + "x",
		`{"owner":"A","ttl_seconds":9223372036854775807}`, `{"owner":"A","ttl_seconds":-0}`, `{"owner": "A","ttl_seconds":60,"metadata": { "a" :[ ] } }`,
	} {
		f.Add(seed)
	}
	var judge *spec
	var once sync.Once
	f.Fuzz(func(t *testing.T, text string) {
		once.Do(func() { judge = newSpec(t) })
		store := lockingtest.NewMemory(time.Now)
		w := fuzzed(t, store, http.MethodPost, "/locks/x", text)
		if !refusedWell(t, w) {
			acceptedWell(t, store, w, text)
			judge.validate(t, "/components/schemas/AcquireRequest", []byte(text)) // the document says so, too
		}
		for at, method := range map[string]string{"/locks/x": http.MethodDelete, "/locks/x/renew": http.MethodPost, "/locks/x/force-release": http.MethodPost} {
			w := fuzzed(t, lockingtest.NewMemory(time.Now), method, at, text)
			require.GreaterOrEqual(t, w.Code, 400, "there is no lock to do something with: %s", w.Body)
			refusedWell(t, w)
		}
	})
}

func fuzzed(t *testing.T, store locking.Store, method, at, text string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, at, strings.NewReader(text))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	return ask(httpapi.New(httpapi.Options{Locks: store}), r)
}

// refusedWell reports whether it was refused: by a 4xx, as a problem.
func refusedWell(t *testing.T, w *httptest.ResponseRecorder) bool {
	t.Helper()
	if w.Code == http.StatusOK {
		return false
	}
	require.Less(t, w.Code, 500, "%s", w.Body)
	require.GreaterOrEqual(t, w.Code, 400, "%s", w.Body)
	problemOf(t, w)
	return true
}

// acceptedWell compares what the store has with what another JSON reader makes of the text.
func acceptedWell(t *testing.T, store locking.Store, w *httptest.ResponseRecorder, text string) {
	t.Helper()
	var sent struct {
		Owner    string          `json:"owner"`
		TTL      json.Number     `json:"ttl_seconds"`
		Metadata json.RawMessage `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &sent))
	stored, err := store.Get(t.Context(), "x")
	require.NoError(t, err)
	require.True(t, utf8.ValidString(stored.Owner))
	assert.Equal(t, strings.TrimSpace(sent.Owner), stored.Owner)
	seconds, err := sent.TTL.Int64()
	require.NoError(t, err)
	assert.Equal(t, time.Duration(seconds)*time.Second, stored.ExpiresAt.Sub(stored.AcquiredAt))
	if sent.Metadata == nil {
		sent.Metadata = json.RawMessage("{}")
	}
	assert.Equal(t, string(sent.Metadata), string(stored.Metadata))
	got := decode[acquireJSON](t, w)
	require.True(t, got.Acquired)
	assert.Equal(t, stored.Owner, got.Lock.Owner)
	assert.Equal(t, stored.FencingToken, got.Lock.FencingToken)
	assert.Contains(t, w.Body.String(), `"metadata":`+string(stored.Metadata))
}

// FuzzNamesInPaths: a name that the rule accepts can be locked, read and released under its escaped path, whatever is in
// it; another one is refused. No path is ever a redirect or a 500.
func FuzzNamesInPaths(f *testing.F) {
	for _, seed := range []string{"a", "/", "a/b", "..", ".", "../x", "a//b", "%2F", "%", "50%", "a?b#c", "", "\x00", "\xff", "\u200d", "renew", "x/renew", "é", "\U0001F980", strings.Repeat("x", 256)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		store := lockingtest.NewMemory(time.Now)
		at := "/locks/" + percent(name)
		w := fuzzed(t, store, http.MethodPost, at, goodAcquire)
		if locking.ValidateResource(name) != nil {
			require.True(t, refusedWell(t, w), "%s", w.Body)
			return
		}
		require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
		assert.Equal(t, name, decode[acquireJSON](t, w).Lock.Resource)
		r, err := store.Get(t.Context(), name)
		require.NoError(t, err)
		assert.Equal(t, name, r.Resource)
		assert.Equal(t, name, decode[lockJSON](t, fuzzed(t, store, http.MethodPost, path(name, "/renew"), `{"owner":"A","ttl_seconds":60}`)).Resource)
		assert.Equal(t, http.StatusNoContent, fuzzed(t, store, http.MethodDelete, path(name), `{"owner":"A"}`).Code)
	})
}
