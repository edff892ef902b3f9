package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// lines are what the audit has got since the last call, without the request ids, which must be there.
func (g *rig) lines() []map[string]any {
	g.Helper()
	var out []map[string]any
	for _, e := range g.audit.TakeAll() {
		fields := e.ContextMap()
		assert.NotEmpty(g, fields["request.id"])
		delete(fields, "request.id")
		assert.Equal(g, "user", fields["actor.type"])
		delete(fields, "actor.type")
		out = append(out, fields)
	}
	return out
}

type line = map[string]any

func TestAuditOfALocksLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, withAuth)
		locker, admin := []string{"Authorization", "Bearer locker"}, []string{"Authorization", "Bearer admin"}
		event := func(action, outcome, actor string, more line) line {
			l := line{"event.action": action, "event.outcome": outcome, "actor.id": actor, "replica": "a", "resource": "team/x"}
			maps.Copy(l, more)
			return l
		}
		do := func(want []line, method, more, body string, who []string) {
			t.Helper()
			g.ask(method, path("team/x", more), body, who...)
			assert.Equal(t, want, g.lines())
		}
		const renew = `{"owner": "A", "ttl_seconds": 60}`
		do([]line{event("lock.acquire", "success", "l", line{"owner": "A", "fencing_token": int64(1), "reason": "free"})}, http.MethodPost, "", goodAcquire, locker)
		do([]line{event("lock.acquire", "success", "l", line{"owner": "A", "fencing_token": int64(1), "reason": "extended"})}, http.MethodPost, "", goodAcquire, locker)
		do(nil, http.MethodPost, "", goodAcquire, admin) // refused: that is normal, and as often as somebody asks
		do(nil, http.MethodPost, "/renew", renew, locker)
		do(nil, http.MethodGet, "", "", locker)
		do([]line{event("lock.renew_fail", "failure", "root", line{"owner": "A", "reason": "lost"})}, http.MethodPost, "/renew", renew, admin)
		do([]line{event("lock.release", "failure", "root", line{"owner": "A", "reason": "not_owner"})}, http.MethodDelete, "", `{"owner": "A"}`, admin)
		do([]line{event("lock.release", "failure", "l", line{"owner": "A", "fencing_token": int64(9), "reason": "stale_token"})},
			http.MethodDelete, "", `{"owner": "A", "fencing_token": 9}`, locker)
		do([]line{event("lock.force_release", "failure", "root", line{"fencing_token": int64(9), "reason": "stuck", "immediate": false})},
			http.MethodPost, "/force-release", `{"fencing_token": 9, "reason": " stuck "}`, admin)
		do([]line{event("lock.force_release", "success", "root", line{"owner": "A", "fencing_token": int64(1), "reason": "stuck", "immediate": false})},
			http.MethodPost, "/force-release", `{"fencing_token": 1, "reason": "stuck"}`, admin)
		time.Sleep(time.Minute)
		do([]line{event("lock.takeover", "success", "root", line{"owner": "A", "fencing_token": int64(2), "reason": "expired"})}, http.MethodPost, "", goodAcquire, admin)
		do([]line{event("lock.release", "success", "root", line{"owner": "A", "fencing_token": int64(2), "reason": "released"})}, http.MethodDelete, "", `{"owner": "A"}`, admin)
		do(nil, http.MethodDelete, "", `{"owner": "A"}`, admin)
	})
}

func TestAuditOfDeniedCallers(t *testing.T) {
	t.Parallel()
	g := newRig(t, withAuth)
	denied := func(actor, reason string, more line) []line {
		l := line{"event.action": "auth.deny", "event.outcome": "failure", "actor.id": actor, "replica": "a", "reason": reason}
		maps.Copy(l, more)
		return []line{l}
	}
	g.ask(http.MethodPost, path("x"), goodAcquire)
	assert.Equal(t, denied("(anonymous)", "no_token", line{"operation": "acquireLock", "resource": "x"}), g.lines())
	g.ask(http.MethodGet, "/locks", "", "Authorization", "Bearer cl_canary_secret")
	assert.Equal(t, denied("(anonymous)", "bad_token", line{"operation": "listLocks"}), g.lines())
	g.ask(http.MethodGet, "/nothing", "")
	assert.Equal(t, denied("(anonymous)", "no_token", nil), g.lines())
	g.ask(http.MethodPost, path("x"), goodAcquire, "Authorization", "Bearer viewer")
	assert.Equal(t, denied("v", "role", line{"operation": "acquireLock", "resource": "x"}), g.lines())
	g.ask(http.MethodPost, path("x"), goodAcquire, "Origin", "https://evil.example")
	assert.Equal(t, denied("(anonymous)", "cross_site", line{"operation": "acquireLock", "resource": "x"}), g.lines())
	g.ask(http.MethodGet, "/locks", "", "Authorization", "Bearer unavailable")
	assert.Empty(t, g.lines(), "nobody was denied: it could not be found out")
}

func TestWithoutAuthenticationTheActorIsAnonymous(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	g.mustAcquire("x", "A")
	lines := g.lines()
	require.Len(t, lines, 1)
	assert.Equal(t, "(anonymous)", lines[0]["actor.id"])
}

// The canary is in everything that a caller keeps for itself; no log and no answer has it.
func TestNoSecretIsLoggedOrAnswered(t *testing.T) {
	t.Parallel()
	const canary = "cl_x_CANARY"
	ledger := withFleet(t)
	for _, change := range []func(o *httpapi.Options){
		func(o *httpapi.Options) { o.Auth = fleet() },
		func(o *httpapi.Options) { o.Auth = callers{canary: fleet()["viewer"]} },
		func(o *httpapi.Options) {
			o.Auth = callers{canary: fleet()["admin"]}
			o.Locks = brokenStore{err: errors.New("refused")}
		},
	} {
		g := newRig(t, func(o *httpapi.Options) { ledger(o); change(o) })
		for _, r := range httpapi.RouteTable() {
			op := operation{id: r.Operation, path: r.Path}
			w := g.ask(r.Method, pathOf(op, "x"), goodBody(op), "Authorization", "Bearer "+canary, "Cookie", canary)
			assert.NotContains(t, fmt.Sprint(w.Header(), w.Body), "CANARY")
		}
		assert.NotContains(t, fmt.Sprint(g.audit.All(), g.log.All()), "CANARY")
	}
}

// Without the database every call is 503, asks to come back, and leaves the details to the log.
func TestWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *httpapi.Options) {
		withFleet(t)(o)
		refused := errors.New("dial postgres://u:secret@db: refused")
		o.Locks, o.Fleet = brokenStore{err: refused}, broken(o.Fleet, func() error { return refused })
	})
	for _, r := range httpapi.RouteTable() {
		op := operation{id: r.Operation, path: r.Path}
		if op.path == "/healthz" || op.path == "/readyz" || op.path == "/openapi.json" || op.path == reloadPath || op.path == "/metrics" || op.id == "testChannel" || op.id == "listInstants" {
			continue
		}
		w := g.ask(r.Method, pathOf(op, "team%2Freport:daily"), goodBody(op))
		g.refused(w, http.StatusServiceUnavailable, "database")
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.NotContains(t, w.Body.String(), "secret")
		logged := g.log.TakeAll()
		require.Len(t, logged, 1, op.id)
		assert.Equal(t, w.Header().Get("X-Request-Id"), logged[0].ContextMap()["request.id"])
		assert.Equal(t, op.id, logged[0].ContextMap()["operation"])
		for _, l := range g.lines() {
			assert.Equal(t, "unknown", l["event.outcome"], "what is not known is not a failure")
			assert.NotContains(t, fmt.Sprint(l), "secret")
		}
	}
}

// A batch that was answered but for this claim is not an answer.
func TestAnUnknownOutcomeIsNotAFact(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *httpapi.Options) { o.Locks = unknowing{o.Locks} })
	g.refused(g.ask(http.MethodPost, path("x", "/renew"), `{"owner": "A", "ttl_seconds": 60}`), http.StatusServiceUnavailable, "database")
	g.refused(g.ask(http.MethodDelete, path("x"), `{"owner": "A"}`), http.StatusServiceUnavailable, "database")
}

type unknowing struct{ locking.Store }

func (unknowing) Renew(context.Context, []locking.Claim) ([]locking.ClaimResult, error) {
	return []locking.ClaimResult{{Err: locking.ErrUnknown}}, nil
}

func (unknowing) Release(context.Context, []locking.Claim) ([]locking.ClaimResult, error) {
	return []locking.ClaimResult{{Err: locking.ErrUnknown}}, nil
}

// The grant of a client that went away stays: its retry with the same owner finds it. The store gets 10 s of its own.
func TestAClientThatLeavesKeepsItsGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		memory := lockingtest.NewMemory(time.Now)
		g := newRig(t, func(o *httpapi.Options) { o.Locks = watching{memory, &left} })
		ctx, leave := context.WithCancel(t.Context())
		leave()
		r := request(t, http.MethodPost, path("x")).WithContext(ctx)
		r.Header.Set("Content-Type", "application/json")
		r.Body = body(goodAcquire)
		g.send(r)
		assert.Equal(t, 10*time.Second, left)
		held, err := memory.Get(t.Context(), "x")
		require.NoError(t, err)
		again := g.mustAcquire("x", "A")
		assert.Equal(t, held.FencingToken, again.FencingToken)
	})
}

// watching notes how long a call may take.
type watching struct {
	locking.Store

	left *time.Duration
}

func (s watching) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	deadline, _ := ctx.Deadline()
	*s.left = time.Until(deadline)
	return s.Store.Acquire(ctx, reqs)
}

// A reader that leaves is no news for the log.
func TestAReaderThatLeavesIsNotLogged(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	g.send(request(t, http.MethodGet, path("x")).WithContext(ctx))
	assert.Zero(t, g.log.Len())
}

// A holder that goes away while a loser looks at it is nobody: the API asks again, and does not invent a holder.
func TestAHolderThatWentAway(t *testing.T) {
	t.Parallel()
	times := 2
	g := newRig(t, func(o *httpapi.Options) { o.Locks = vanishing{o.Locks, &times} })
	assert.True(t, g.acquire("x", "A").Acquired)
	times = 100
	g.refused(g.ask(http.MethodPost, path("x"), goodAcquire), http.StatusServiceUnavailable, "database")
}

// vanishing loses to nobody so many times.
type vanishing struct {
	locking.Store

	times *int
}

func (s vanishing) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	if *s.times--; *s.times >= 0 {
		return make([]locking.AcquireResult, len(reqs)), nil
	}
	return s.Store.Acquire(ctx, reqs)
}
