package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/internal/httpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ask(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func request(t *testing.T, method, path string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Host = "127.0.0.1:8420"
	return r
}

// problemOf checks the form that every error has, and returns it.
func problemOf(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	assert.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	var p map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
	assert.InDelta(t, w.Code, p["status"], 0)
	assert.Equal(t, w.Header().Get("X-Request-Id"), p["request_id"])
	assert.Equal(t, "about:blank", p["type"])
	assert.Equal(t, http.StatusText(w.Code), p["title"])
	assert.NotEmpty(t, p["code"])
	return p
}

func TestHealthzIsTheProcessOnly(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{Ready: func(context.Context) error {
		panic("healthz asked the readiness check")
	}})
	w := ask(h, request(t, http.MethodGet, "/healthz"))
	assert.Equal(t, http.StatusOK, w.Code)
	assert.JSONEq(t, `{"status":"ok"}`, w.Body.String())
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
}

func TestReadyz(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		err    error
		status int
		code   string
		detail string
	}{
		{"ready", nil, http.StatusOK, "", ""},
		{"draining", &httpapi.NotReadyError{Code: "draining", Reason: "the replica is leaving"}, http.StatusServiceUnavailable, "draining", "the replica is leaving"},
		{"wrapped", errors.Join(&httpapi.NotReadyError{Code: "schema", Reason: "the schema is newer", Err: errors.New("secret")}), http.StatusServiceUnavailable, "schema", "the schema is newer"},
		{"internal error", errors.New("dial postgres://u:secret@db/x: refused"), http.StatusServiceUnavailable, "not_ready", "a check went wrong; the log has the details under the request id"},
		{"deadline", context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout", "the check took too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := ask(httpapi.New(httpapi.Options{Ready: func(context.Context) error { return c.err }}), request(t, http.MethodGet, "/readyz"))
			require.Equal(t, c.status, w.Code)
			assert.NotContains(t, w.Body.String(), "secret")
			if c.err == nil {
				assert.JSONEq(t, `{"status":"ready"}`, w.Body.String())
				return
			}
			p := problemOf(t, w)
			assert.Equal(t, c.code, p["code"])
			assert.Equal(t, c.detail, p["detail"])
			assert.Equal(t, "1", w.Header().Get("Retry-After"))
		})
	}
}

func TestReadyWithoutACheck(t *testing.T) {
	t.Parallel()
	assert.Equal(t, http.StatusOK, ask(httpapi.New(httpapi.Options{}), request(t, http.MethodGet, "/readyz")).Code)
}

// A probe a second must not be a line a second; each change is one line, with the cause that the client did not see.
func TestReadinessIsLoggedWhenItChanges(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.InfoLevel)
	var err error
	h := httpapi.New(httpapi.Options{Logger: zap.New(core), Ready: func(context.Context) error { return err }})
	for _, next := range []error{nil, nil, errors.New("refused"), errors.New("refused"), nil} {
		err = next
		ask(h, request(t, http.MethodGet, "/readyz"))
	}
	got := logs.AllUntimed()
	require.Len(t, got, 2)
	assert.Equal(t, "not ready", got[0].Message)
	assert.Equal(t, "refused", got[0].ContextMap()["error"])
	assert.NotEmpty(t, got[0].ContextMap()["request.id"])
	assert.Equal(t, "ready", got[1].Message)
}

func TestAClientThatLeavesSaysNothingAboutTheDaemon(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.DebugLevel)
	ctx, cancel := context.WithCancel(t.Context())
	h := httpapi.New(httpapi.Options{Logger: zap.New(core), Ready: func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	}})
	ask(h, request(t, http.MethodGet, "/readyz").WithContext(ctx))
	assert.Zero(t, logs.Len())
}

func TestOnlyGetAndHead(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{})
	for _, path := range []string{"/healthz", "/readyz"} {
		assert.Equal(t, http.StatusOK, ask(h, request(t, http.MethodHead, path)).Code)
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodTrace, "BREW"} {
			w := ask(h, request(t, method, path))
			assert.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
			assert.Equal(t, "GET, HEAD", w.Header().Get("Allow"), method)
			assert.Equal(t, "method", problemOf(t, w)["code"])
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{})
	for _, path := range []string{"/", "/healthz/", "/HEALTHZ", "/api", "/healthz%00", "/debug/pprof/", "/locks/a%2Fb"} {
		w := ask(h, request(t, http.MethodGet, path))
		assert.Equal(t, http.StatusNotFound, w.Code, path)
		assert.Equal(t, "no_route", problemOf(t, w)["code"], path)
	}
}

func TestNoAnswerNamesASoftware(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{})
	for _, path := range []string{"/healthz", "/readyz", "/nothing"} {
		w := ask(h, request(t, http.MethodGet, path))
		assert.Empty(t, w.Header().Get("Server"))
		assert.Empty(t, w.Header().Get("X-Powered-By"))
		assert.NotContains(t, strings.ToLower(w.Body.String()), "cronlatch")
		assert.NotContains(t, w.Body.String(), "go1")
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{})
	for given, kept := range map[string]bool{
		"probe-1.a_B": true, "": false, "a b": false, "a\x1b[2J": false, "ü": false,
		strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
	} {
		r := request(t, http.MethodGet, "/healthz")
		r.Header.Set("X-Request-Id", given)
		got := ask(h, r).Header().Get("X-Request-Id")
		if kept {
			assert.Equal(t, given, got)
			continue
		}
		assert.NotEqual(t, given, got)
		assert.Regexp(t, `^[A-Z0-9]{26}$`, got)
	}
	first, second := ask(h, request(t, http.MethodGet, "/")), ask(h, request(t, http.MethodGet, "/"))
	assert.NotEqual(t, first.Header().Get("X-Request-Id"), second.Header().Get("X-Request-Id"))
}

func TestHostAllowlist(t *testing.T) {
	t.Parallel()
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8420}
	public := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8420}
	for _, c := range []struct {
		host  string
		local net.Addr
		ok    bool
	}{
		{"127.0.0.1:8420", loopback, true},
		{"127.0.0.1", loopback, true},
		{"127.9.9.9:1", loopback, true},
		{"LOCALHOST:8420", loopback, true},
		{"[::1]:8420", loopback, true},
		{"[::1]", loopback, true},
		{"[::ffff:127.0.0.1]:8420", loopback, true},
		{"evil.example:8420", loopback, false},
		{"evil.example", &net.TCPAddr{IP: net.IPv6loopback, Port: 1}, false},
		{"localhost.evil.example", loopback, false},
		{"127.0.0.1.evil.example", loopback, false},
		{"", loopback, false},
		{"192.0.2.1:8420", loopback, false},
		{"evil.example", nil, false},
		{"replica-1.internal:8420", public, true},
	} {
		r := request(t, http.MethodGet, "/healthz")
		if c.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.local))
		}
		r.Host = c.host
		w := ask(httpapi.New(httpapi.Options{}), r)
		if c.ok {
			assert.Equal(t, http.StatusOK, w.Code, c.host)
			continue
		}
		require.Equal(t, http.StatusMisdirectedRequest, w.Code, c.host)
		assert.Equal(t, "host", problemOf(t, w)["code"])
		assert.NotContains(t, w.Body.String(), "evil")
	}
}

func TestAPanicIsA500AndALine(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.ErrorLevel)
	h := httpapi.New(httpapi.Options{Logger: zap.New(core), Ready: func(context.Context) error { panic("secret") }})
	w := ask(h, request(t, http.MethodGet, "/readyz"))
	require.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Equal(t, "internal", problemOf(t, w)["code"])
	assert.NotContains(t, w.Body.String(), "secret")
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, "handler panicked", logs.All()[0].Message)

	aborted := httpapi.New(httpapi.Options{Ready: func(context.Context) error { panic(http.ErrAbortHandler) }})
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { ask(aborted, request(t, http.MethodGet, "/readyz")) })
}
