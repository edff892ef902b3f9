package httplock_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"go.uber.org/zap/zapcore"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/httplock"
)

// FuzzResourceNames: a name that the one rule accepts is the same name everywhere it goes, and one that it refuses goes
// nowhere. PostgreSQL takes part where there is a server for tests.
func FuzzResourceNames(f *testing.F) {
	for _, seed := range []string{
		"a", "report:monthly-2026-05", "a/b", "a/../b", "//", "%2F", "100%", "?a=b#c", `"`, `\`, `a\`, `\n`, "{}", "'", ";--", "$1", "?0", "ä", "e\u0301",
		"\u00a0", " a ", "\U0010FFFD", "\ufffd", strings.Repeat("x", 255), strings.Repeat("é", 127), "<b>&amp;", "+", "\u00ad",
		"", ".", "..", "a\x00", "\xff", "a\nb", "\u200b", "\u2028", "\u202e", "\x7f", "\u009b", "\ue000", "\ufdd0", strings.Repeat("x", 256), "\xed\xa0\x80",
	} {
		f.Add(seed)
	}
	servers := map[string]*server{"sqlite": newServer(f, dbtest.SQLite(f).Main)}
	if os.Getenv(dbtest.PostgresEnv) != "" {
		servers["postgres"] = newServer(f, dbtest.Postgres(f).Main)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, s := range servers {
			if locking.ValidateResource(name) != nil {
				s.refuses(t, name)
				continue
			}
			s.keeps(t, name)
		}
		if locking.ValidateResource(name) == nil {
			assert.Equal(t, name, throughLabel(t, name))
		}
	})
}

// server is the HTTP API on a database, with its audit.
type server struct {
	store  locking.Store
	client *httplock.Client
	api    http.Handler
	lines  *bytes.Buffer
}

func newServer(f *testing.F, db *bun.DB) *server {
	f.Helper()
	store, err := locking.NewStore(db)
	require.NoError(f, err)
	s := &server{store: store, lines: new(bytes.Buffer)}
	s.api = httpapi.New(httpapi.Options{Locks: store, Audit: audit.New(zapcore.AddSync(s.lines))})
	s.client = serve(f, s.api)
	return s
}

// keeps follows a name through path, JSON, database, list and audit.
func (s *server) keeps(t *testing.T, name string) {
	t.Helper()
	s.lines.Reset()
	owner := locking.NewOwner()
	res, err := s.client.Acquire(t.Context(), []locking.AcquireRequest{{Resource: name, Owner: owner, TTL: time.Minute}})
	require.NoError(t, err)
	require.True(t, res[0].Acquired)
	row, err := s.store.Get(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, owner, row.Owner, "the lock of this very name")
	assert.Equal(t, name, row.Resource)
	listed, err := s.client.List(t.Context(), locking.ListFilter{Prefix: name, Owner: owner})
	require.NoError(t, err)
	assert.Equal(t, []string{name}, namesOf(listed))
	released, err := s.client.Release(t.Context(), []locking.Claim{{Resource: name, Owner: owner}})
	require.NoError(t, err)
	require.NoError(t, released[0].Err)

	text := s.lines.String()
	assert.Equal(t, 2, strings.Count(text, "\n"), "one line for each decision: %s", text)
	for line := range strings.Lines(text) {
		var entry struct{ Resource string }
		require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
		assert.Equal(t, name, entry.Resource)
	}
}

// refuses asks with the name on every way in.
func (s *server) refuses(t *testing.T, name string) {
	t.Helper()
	req := []locking.AcquireRequest{{Resource: name, Owner: "A", TTL: time.Minute}}
	_, err := s.client.Acquire(t.Context(), req)
	require.ErrorIs(t, err, locking.ErrInvalid)
	_, err = s.store.Acquire(t.Context(), req)
	require.ErrorIs(t, err, locking.ErrInvalid)
	raw := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"owner":"A","ttl_seconds":60}`))
	raw.URL = &url.URL{Path: "/locks/" + name, RawPath: "/locks/" + url.PathEscape(name)}
	raw.Host = "127.0.0.1"
	raw.Header.Set("Content-Type", plainJSON)
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, raw)
	assert.True(t, w.Code >= 400 && w.Code < 500, "%d for %q", w.Code, name)
	assert.Contains(t, w.Header().Get("Content-Type"), "problem")
}

// throughLabel writes a name as a label's value of Prometheus's text format and reads it again
// (https://prometheus.io/docs/instrumenting/exposition_formats): one line of UTF-8, with three escapes.
func throughLabel(t *testing.T, name string) string {
	t.Helper()
	line := `locks_held{resource="` + strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(name) + `"} 1`
	assert.True(t, utf8.ValidString(line))
	assert.NotContains(t, line, "\n")
	assert.NotContains(t, line, "\r")
	value, rest := strings.TrimPrefix(line, `locks_held{resource="`), ""
	var out strings.Builder
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
			out.WriteByte(value[i])
		case '"':
			rest, i = value[i:], len(value)
		default:
			out.WriteByte(value[i])
		}
	}
	assert.Equal(t, `"} 1`, rest, "the label ends where it should")
	return out.String()
}
