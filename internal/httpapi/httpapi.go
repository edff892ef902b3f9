// Package httpapi is the daemon's HTTP listener: the lock service (/locks), its description (/openapi.json), reading the
// configuration again (/-/reload), and the answers to two questions: is the process alive (/healthz), and may it be given work (/readyz).
//
// Model: a table of routes (routes.go) on net/http's mux, wrapped once by what every request gets: a request id, a check
// of the Host header, recovery from panics. A request is then asked, in this order: does a page of another site send it,
// who calls (access.go), is there such a method, such a path, may the caller do that; and its handler asks for query
// (list.go), content type, size and JSON (body.go), and the fields (fields.go). Handlers return errors; one place turns
// them into application/problem+json (RFC 9457) with a stable code. openapi.json describes every answer.
//
// Guarantees: what two readers could understand differently is refused before anything is done. No path is answered with
// a redirect, and no input with a 500. An error of the database is 503, never "no": the outcome is not known. A write
// that was begun is finished, or given up after storeTimeout, whether its client is still there or not; a client that
// lost the answer asks again with the same owner. /healthz never asks the database, so that an outage of the database
// restarts nobody; /readyz gives its check readyTimeout. An answer to a client never contains the text of an internal
// error, a path, a DSN or a version, only the request id under which the log has it. A slow or idle client is cut. A
// foreign Host is refused, so that no page in a browser can reach the daemon through a rebound name. Who is not let in,
// and every grant, takeover, release and lost renewal, is a line of the audit.
//
// Not guaranteed: fairness between callers, or a rate. A lock that is held is an answer, not a place in a queue.
//
// Failure: a listener that breaks ends Serve with an error; a panic of a handler is a 500 and a line in the log; tokens
// that cannot be checked are 503.
//
// Tests run handlers directly, on a store in memory and on both databases; every answer in any test is compared with the
// OpenAPI document. The timeouts are tested over an in-memory network in a synctest bubble.
package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
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
	// Audit gets a line for each decision about a lock and for each refused caller; nil is none.
	Audit *zap.Logger
	// Locks is what /locks works on; nil: there are no such routes.
	Locks locking.Store
	// Reload reads the configuration again, for the caller whose name the audit shall have. A *RejectedError and a
	// *NotReadyError reach the client as they are, any other error only the log. nil: there is no such route.
	Reload func(ctx context.Context, actor string) (Reloaded, error)
	// TestChannel sends a message to a channel now, for the caller whose name it gets. A *notify.UnknownError says that there is
	// no such channel; the text of any other error reaches the client. nil: there is no such route.
	TestChannel func(ctx context.Context, name, actor string) error
	// Auth tells callers apart by their bearer token; nil is no authentication, and everybody is an admin without a name.
	Auth Authenticator
	// Metrics answers GET /metrics; nil: there is no such route.
	Metrics http.Handler
	// Fleet is what /jobs, /runs, /replicas and /audit work on; nil: there are no such routes.
	Fleet *Fleet
	// Actor is who acts when Auth is nil; "" is nobody in particular.
	Actor string
	// Replica is the daemon's name, for the audit.
	Replica string
	// Grace is how long an expired lock stays taken for other owners (takeover_grace).
	Grace time.Duration
	// AllowedHosts are names that the Host header may have beside those of loopback. Without any, a listener on another
	// address answers to every name.
	AllowedHosts []string
	// Version of the program, for the OpenAPI document; "" is "dev".
	Version string
}

// Fleet is the ledger and the jobs of all replicas, as this process sees them.
type Fleet struct {
	DB *scheduler.DB // migrated
	// Check is asked before every call; an error counts as a database that does not answer. Optional.
	Check func(ctx context.Context) error
	// Jobs are those known here, after jobs.Link; nil: none are, as in a command without a configuration.
	Jobs func() []*jobs.Job
	TTL  time.Duration // of locks: after such a silence a replica counts as gone
	Wake func()        // something has become due here. Optional
	// Observe hears what is ended here; nil is nobody.
	Observe []scheduler.Observer
	// History says how long runs of jobs that say nothing are kept here; nil: as the program's own defaults say.
	History func() jobs.History
	// Now is the clock from which the next instants of schedules are shown; nil is time.Now.
	Now func() time.Time
}

// Authenticator finds out who calls. It is called at the same time by several.
type Authenticator interface {
	// Authenticate knows the token, or answers auth.ErrUnauthenticated (it is not, or no longer, a token) or
	// auth.ErrUnavailable (that cannot be said now).
	Authenticate(ctx context.Context, token string) (auth.Principal, error)
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
	o      Options
	mux    *http.ServeMux
	log    *zap.Logger
	audit  *zap.Logger
	origin *http.CrossOriginProtection
	hosts  hosts
	// nowhere answers for every path that is not in the table of routes.
	nowhere *node
	state   readyState
	starts  startLimits
}

// New returns the handler of all routes.
func New(o Options) http.Handler {
	a := &api{
		o: o, mux: http.NewServeMux(), log: orNone(o.Logger), audit: orNone(o.Audit),
		origin: http.NewCrossOriginProtection(), hosts: newHosts(o.AllowedHosts),
	}
	if a.o.Ready == nil {
		a.o.Ready = func(context.Context) error { return nil }
	}
	if a.o.Locks != nil {
		a.o.Locks = locking.Checked(o.Locks)
	}
	a.fill()
	return a
}

func orNone(l *zap.Logger) *zap.Logger {
	if l == nil {
		return zap.NewNop()
	}
	return l
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
	switch escaped := r.URL.EscapedPath(); {
	case !a.hosts.allow(r):
		writeProblem(w, r, problem{
			Status: http.StatusMisdirectedRequest, Code: "host",
			Detail: "the Host header names something that this listener does not answer for",
		})
	case !clean(escaped):
		a.nowhere.ServeHTTP(w, r)
	default:
		a.mux.ServeHTTP(w, escapedOnce(r, escaped))
	}
}

// clean reports whether a path means one thing only. net/http's mux would answer the others with a redirect, which
// turns a write into a read and a name into another one.
func clean(escaped string) bool {
	want := path.Clean(escaped)
	if strings.HasSuffix(escaped, "/") && want != "/" {
		want += "/"
	}
	return strings.HasPrefix(escaped, "/") && escaped == want
}

// escapedOnce makes the mux match the path as it was sent, so that a wildcard gets "%2F" and not "/": the mux takes a
// segment that is a lone slash for the end of the path, and the name "/" could never be locked.
func escapedOnce(r *http.Request, escaped string) *http.Request {
	r2 := *r
	r2.URL = &url.URL{Path: escaped, RawQuery: r.URL.RawQuery}
	return &r2
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
