package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// rig is an API on a store in memory. Every answer that it gives is compared with the OpenAPI document.
type rig struct {
	*testing.T

	api   http.Handler
	spec  *spec
	fleet *httpapi.Fleet // nil: none
	store locking.Store
	audit *observer.ObservedLogs
	log   *observer.ObservedLogs
}

func newRig(t *testing.T, change func(o *httpapi.Options)) *rig {
	t.Helper()
	auditCore, auditLines := observer.New(zapcore.InfoLevel)
	logCore, logLines := observer.New(zapcore.DebugLevel)
	o := httpapi.Options{Locks: lockingtest.NewMemory(time.Now), Audit: zap.New(auditCore), Logger: zap.New(logCore), Replica: "a", Reload: noNews, Metrics: http.HandlerFunc(oneMetric), TestChannel: anyChannel}
	if change != nil {
		change(&o)
	}
	return &rig{T: t, api: httpapi.New(o), spec: newSpec(t), fleet: o.Fleet, store: o.Locks, audit: auditLines, log: logLines}
}

// oneMetric is a /metrics that does not say much.
func oneMetric(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = io.WriteString(w, "cronlatch_db_up 1\n")
}

// anyChannel is a channel of every name that takes every message.
func anyChannel(context.Context, string, string) error { return nil }

// noNews is a reload that finds what was there.
func noNews(context.Context, string) (httpapi.Reloaded, error) { return httpapi.Reloaded{}, nil }

// ask sends a request with a body of JSON, unless the body is empty.
func (g *rig) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	g.Helper()
	r := httptest.NewRequestWithContext(g.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8420"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return g.send(r)
}

func (g *rig) send(r *http.Request) *httptest.ResponseRecorder {
	g.Helper()
	w := httptest.NewRecorder()
	g.api.ServeHTTP(w, r)
	g.spec.check(g.T, r, w)
	return w
}

// lockJSON is a lock as a client reads it.
type lockJSON struct {
	Resource     string          `json:"resource"`
	Owner        string          `json:"owner"`
	FencingToken int64           `json:"fencing_token"`
	AcquiredAt   time.Time       `json:"acquired_at"`
	ExpiresAt    time.Time       `json:"expires_at"`
	RemainingMS  int64           `json:"remaining_ms"`
	Metadata     json.RawMessage `json:"metadata"`
}

type acquireJSON struct {
	Acquired   bool      `json:"acquired"`
	Lock       *lockJSON `json:"lock"`
	Resource   string    `json:"resource"`
	RetryAfter int64     `json:"retry_after_seconds"`
	Holder     *lockJSON `json:"holder"`
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v), "%s", w.Body)
	return v
}

// path is that of a lock, with what follows the name.
func path(name string, more ...string) string {
	return "/locks/" + url.PathEscape(name) + strings.Join(more, "")
}

func (g *rig) acquire(name, owner string, headers ...string) acquireJSON {
	g.Helper()
	w := g.ask(http.MethodPost, path(name), `{"owner": "`+owner+`", "ttl_seconds": 600}`, headers...)
	require.Equal(g, http.StatusOK, w.Code, w.Body.String())
	return decode[acquireJSON](g.T, w)
}

func (g *rig) mustAcquire(name, owner string, headers ...string) lockJSON {
	g.Helper()
	got := g.acquire(name, owner, headers...)
	require.True(g, got.Acquired)
	return *got.Lock
}

// refused expects a problem.
func (g *rig) refused(w *httptest.ResponseRecorder, status int, code string) map[string]any {
	g.Helper()
	require.Equal(g, status, w.Code, w.Body.String())
	p := problemOf(g.T, w)
	assert.Equal(g, code, p["code"], w.Body.String())
	return p
}

// callers is a set of tokens.
type callers map[string]auth.Principal

func (c callers) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	switch token {
	case "panic":
		panic("secret")
	case "unavailable":
		return auth.Principal{}, auth.ErrUnavailable
	case "broken":
		return auth.Principal{}, errors.New("dial postgres://u:secret@db: refused")
	}
	if p, ok := c[token]; ok {
		return p, nil
	}
	return auth.Principal{}, auth.ErrUnauthenticated
}

// fleet has a caller of every role; the locker's names begin with "team/".
func fleet() callers {
	return callers{
		"viewer":   {ID: "v", Role: auth.Viewer},
		"locker":   {ID: "l", Role: auth.Locker, Prefix: "team/"},
		"locker2":  {ID: "l2", Role: auth.Locker, Prefix: "team/"},
		"operator": {ID: "o", Role: auth.Operator},
		"admin":    {ID: "root", Role: auth.Admin},
		"nobody":   {ID: "n"},
	}
}

func withAuth(o *httpapi.Options) { o.Auth = fleet() }

// brokenStore answers nothing, or panics when told so.
type brokenStore struct {
	locking.Store

	err error
}

func (s brokenStore) broken() error {
	if s.err == nil {
		panic("secret")
	}
	return s.err
}

func (s brokenStore) Acquire(context.Context, []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	return nil, s.broken()
}

func (s brokenStore) Renew(context.Context, []locking.Claim) ([]locking.ClaimResult, error) {
	return nil, s.broken()
}

func (s brokenStore) Release(context.Context, []locking.Claim) ([]locking.ClaimResult, error) {
	return nil, s.broken()
}

func (s brokenStore) Get(context.Context, string) (locking.Record, error) {
	return locking.Record{}, s.broken()
}

func (s brokenStore) List(context.Context, locking.ListFilter) ([]locking.Record, error) {
	return nil, s.broken()
}

func (s brokenStore) ForceRelease(context.Context, locking.Force) (locking.Record, error) {
	return locking.Record{}, s.broken()
}

func body(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
