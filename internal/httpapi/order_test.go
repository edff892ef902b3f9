package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
)

// A request that is wrong in every way is told so one thing after the other, from the outside in.
func TestTheOrderOfRefusals(t *testing.T) {
	t.Parallel()
	g := newRig(t, withAuth)
	method, at, sent := "BREW", "/locks/team%2F%00?x=1", strings.Repeat(" ", 64<<10+1)
	headers := http.Header{"Origin": {"https://evil.example"}, "Content-Type": {"text/plain"}}
	host := "rebound.example"
	for _, step := range []struct {
		status int
		code   string
		mend   func()
	}{
		{http.StatusMisdirectedRequest, "host", func() { host = "localhost" }},
		{http.StatusForbidden, "cross_site", func() { headers.Del("Origin") }},
		{http.StatusUnauthorized, "unauthenticated", func() { headers.Set("Authorization", "Bearer viewer") }},
		{http.StatusMethodNotAllowed, "method", func() { method = http.MethodPost }},
		{http.StatusForbidden, "forbidden", func() { headers.Set("Authorization", "Bearer locker") }},
		{http.StatusBadRequest, "query", func() { at = "/locks/team%2F%00" }},
		{http.StatusUnsupportedMediaType, "content_type", func() { headers.Set("Content-Type", "application/json") }},
		{http.StatusRequestEntityTooLarge, "too_large", func() { sent = `{"owner": 1, "owner": 2}` }},
		{http.StatusBadRequest, "malformed", func() { sent = `{"owner": 1}` }},
		{http.StatusUnprocessableEntity, "invalid", func() { at, sent = "/locks/team%2Fx", goodAcquire }},
	} {
		r := httptest.NewRequestWithContext(t.Context(), method, at, strings.NewReader(sent))
		r.Host, r.Header = host, headers.Clone()
		g.refused(g.send(r), step.status, step.code)
		step.mend()
	}
	r := httptest.NewRequestWithContext(t.Context(), method, at, strings.NewReader(sent))
	r.Host, r.Header = host, headers
	assert.Equal(t, http.StatusOK, g.send(r).Code)
}

// A database that hangs costs a request 10 s, and not more.
func TestAStoreThatHangs(t *testing.T) {
	t.Parallel()
	for _, op := range newSpec(t).operations(t) {
		if !strings.HasPrefix(op.path, "/locks") {
			continue // what the fleet's calls ask, they ask with the same contexts
		}
		synctest.Test(t, func(t *testing.T) {
			g := newRig(t, func(o *httpapi.Options) { o.Locks = hanging{} })
			began := time.Now()
			g.refused(g.ask(op.method, pathOf(op, "x"), goodBody(op)), http.StatusServiceUnavailable, "database")
			assert.Equal(t, 10*time.Second, time.Since(began), op.id)
		})
	}
}

// hanging answers when its caller has given up.
type hanging struct{ locking.Store }

func (hanging) Acquire(ctx context.Context, _ []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) Renew(ctx context.Context, _ []locking.Claim) ([]locking.ClaimResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) Release(ctx context.Context, _ []locking.Claim) ([]locking.ClaimResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) Get(ctx context.Context, _ string) (locking.Record, error) {
	<-ctx.Done()
	return locking.Record{}, ctx.Err()
}

func (hanging) List(ctx context.Context, _ locking.ListFilter) ([]locking.Record, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) ForceRelease(ctx context.Context, _ locking.Force) (locking.Record, error) {
	<-ctx.Done()
	return locking.Record{}, ctx.Err()
}

// Every route comes from the table, or the table of routes and roles would not have it.
func TestOnlyTheTableFillsTheMux(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, ".Handle(") || strings.Contains(line, ".HandleFunc(") || strings.Contains(line, "NewServeMux()") {
				found = append(found, file+": "+strings.TrimSpace(line))
			}
		}
	}
	assert.Equal(t, []string{
		"httpapi.go: o: o, mux: http.NewServeMux(), log: orNone(o.Logger), audit: orNone(o.Audit),",
		"routes.go: a.mux.Handle(rt.path, n)", `routes.go: a.mux.Handle("/", a.nowhere)`,
	}, found)
}
