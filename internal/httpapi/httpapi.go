// Package httpapi is the daemon's HTTP listener. In this version it answers two questions: is the process alive
// (/healthz) and may it be given work (/readyz).
//
// Model: a table of routes on net/http's mux, wrapped once by what every request gets: a request id, a check of the
// Host header, recovery from panics. Errors are application/problem+json (RFC 9457) with a stable code.
//
// Guarantees: /healthz never asks the database, so that an outage of the database restarts nobody; /readyz gives
// its check readyTimeout; an answer to a client never contains the text of an internal error,
// a path, a DSN or a version, only the request id under which the log has it; a slow or idle client is cut; on
// loopback a foreign Host is refused, so that no page in a browser can reach the daemon through a rebound name.
//
// Not guaranteed: authentication. Nothing here changes anything, and the daemon listens on loopback only.
//
// Failure: a listener that breaks ends Serve with an error; a panic of a handler is a 500 and a line in the log.
//
// Tests run handlers directly, and the timeouts over an in-memory network in a synctest bubble.
package httpapi

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// readyTimeout bounds one readiness check: an orchestrator's probe gives up after a few seconds, too.
const readyTimeout = 3 * time.Second

// Options configure the handler.
type Options struct {
	// Ready says why the daemon should get no work now: a *NotReadyError reaches the client as it is, any other error only
	// the log. It is called once for each request to /readyz, at the same time by several, with a context that ends
	// after 3 s and that it must obey. A nil Ready is always ready.
	Ready  func(ctx context.Context) error
	Logger *zap.Logger // nil is none
}

// NotReadyError is a reason that may be shown to anybody who can reach the listener.
type NotReadyError struct {
	Code   string // stable, snake_case: "draining", "database", "schema"
	Reason string // a sentence without secrets, SQL, paths
	Err    error  // for the log only; may be nil
}

func (e *NotReadyError) Error() string { return e.Reason }

// Unwrap gives the cause.
func (e *NotReadyError) Unwrap() error { return e.Err }

type api struct {
	mux   *http.ServeMux
	log   *zap.Logger
	ready func(ctx context.Context) error
	state readyState
}

// New returns the handler of all routes.
func New(o Options) http.Handler {
	a := &api{mux: http.NewServeMux(), log: o.Logger, ready: o.Ready}
	if a.log == nil {
		a.log = zap.NewNop()
	}
	if a.ready == nil {
		a.ready = func(context.Context) error { return nil }
	}
	a.mux.HandleFunc("/healthz", readOnly(a.healthz))
	a.mux.HandleFunc("/readyz", readOnly(a.readyz))
	a.mux.HandleFunc("/", notFound)
	return a
}

// ServeHTTP does what every request gets, and routes it.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := requestID(r)
	r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
	h := w.Header()
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	defer a.recovered(w, r)
	if !hostAllowed(r) {
		writeProblem(w, r, problem{
			Status: http.StatusMisdirectedRequest, Code: "host",
			Detail: "this listener answers on loopback only, and the Host header names something else",
		})
		return
	}
	a.mux.ServeHTTP(w, r)
}

// recovered turns a panic of a handler into a 500; the one that net/http uses to abort a connection passes.
func (a *api) recovered(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares the same way; it is never wrapped
		panic(cause)
	}
	a.log.Error("handler panicked", zap.String("request.id", idOf(r)), zap.Any("panic", cause), zap.Stack("stack"))
	writeProblem(w, r, problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "the log has the details under the request id"})
}

// readOnly lets GET and HEAD through.
func readOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			writeProblem(w, r, problem{Status: http.StatusMethodNotAllowed, Code: "method", Detail: "use GET or HEAD"})
			return
		}
		next(w, r)
	}
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, problem{Status: http.StatusNotFound, Code: "not_found", Detail: "there is nothing under this path"})
}
