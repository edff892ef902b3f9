package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
)

func TestOpenAPIIsServedAsItIsPrinted(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *httpapi.Options) { o.Version = `1.2.3-"rc"` })
	w := g.ask(http.MethodGet, "/openapi.json", "")
	require.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, httpapi.OpenAPI(`1.2.3-"rc"`), w.Body.Bytes())
	assert.Contains(t, w.Body.String(), `"version": "1.2.3-\"rc\""`)
	assert.True(t, json.Valid(w.Body.Bytes()))
	assert.Contains(t, string(httpapi.OpenAPI("")), `"version": "dev"`)
}

// Every reference leads somewhere, every component is used, every operation has a name of its own.
func TestOpenAPIIsWhole(t *testing.T) {
	t.Parallel()
	s := newSpec(t)
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				_, at := s.at(t, strings.TrimPrefix(ref, "#"))
				used[at] = true
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(s.root)
	for kind, all := range object(t, s.root["components"]) {
		for name := range object(t, all) {
			assert.True(t, used["/components/"+kind+"/"+name] || kind == "securitySchemes", "%s %s is not used", kind, name)
		}
	}
	seen := map[string]bool{}
	for _, op := range s.operations(t) {
		assert.False(t, seen[op.id], op.id)
		seen[op.id] = true
	}
}

func TestOpenAPIExamplesAreValid(t *testing.T) {
	t.Parallel()
	s := newSpec(t)
	count := 0
	check := func(pointer string, media map[string]any) {
		if example, ok := media["example"]; ok {
			count++
			s.validateValue(t, pointer+"/schema", example)
		}
		if examples, ok := media["examples"].(map[string]any); ok {
			for _, e := range examples {
				count++
				s.validateValue(t, pointer+"/schema", object(t, e)["value"])
			}
		}
	}
	for _, op := range s.operations(t) {
		for _, status := range op.statuses {
			v, pointer := s.at(t, op.pointer+"/responses/"+status)
			content, _ := object(t, v)["content"].(map[string]any)
			for kind, media := range content {
				check(pointer+"/content/"+escaped(kind), object(t, media))
			}
		}
		if v, _ := s.at(t, op.pointer); object(t, v)["requestBody"] != nil {
			pointer := op.pointer + "/requestBody/content/application~1json"
			media, _ := s.at(t, pointer)
			check(pointer, object(t, media))
		}
	}
	assert.Greater(t, count, 60)
}

// The bodies that the document gives as examples are accepted by the server: what the document calls valid is valid.
func TestOpenAPIRequestExamplesWork(t *testing.T) {
	t.Parallel()
	s := newSpec(t)
	for _, op := range s.operations(t) {
		v, _ := s.at(t, op.pointer)
		if object(t, v)["requestBody"] == nil {
			continue
		}
		media, _ := s.at(t, op.pointer+"/requestBody/content/application~1json")
		example, err := json.Marshal(object(t, media)["example"])
		require.NoError(t, err)
		w := newRig(t, withFleet(t)).ask(op.method, pathOf(op, "x"), string(example))
		fits := []int{http.StatusOK, http.StatusCreated, http.StatusNotFound, http.StatusConflict}
		assert.Contains(t, fits, w.Code, "%s: %s", op.id, w.Body)
	}
}

// pathOf is the path of an operation on what has this name, or on the first run.
func pathOf(op operation, name string) string {
	return strings.NewReplacer("{resource}", name, "{job}", name, "{replica}", name, "{channel}", name, "{id}", "1").Replace(op.path)
}

// goodBody is what an operation accepts.
func goodBody(op operation) string {
	return map[string]string{
		"acquireLock":      `{"owner": "A", "ttl_seconds": 60}`,
		"renewLock":        `{"owner": "A", "ttl_seconds": 60}`,
		"releaseLock":      `{"owner": "A"}`,
		"forceReleaseLock": `{"fencing_token": 1, "reason": "gone"}`,
		"pauseJobs":        `{"tag": "finance"}`,
		"resumeJobs":       `{"tag": "finance"}`,
		"pauseJob":         `{"reason": "a move"}`,
		"resumeJob":        `{}`,
		"drainReplica":     `{"reason": "a move"}`,
		"undrainReplica":   `{}`,
		"cancelRun":        `{"reason": "wrong month"}`,
		"retryRun":         `{"reason": "fixed"}`,
		"startRun":         `{}`,
		"backfillJob":      `{"from": "2026-05-01T00:00:00Z", "until": "2026-05-01T00:02:00Z", "preview": true}`,
	}[op.id]
}

// Every operation, every status and every code that the document declares comes; nothing else does (spec.check).
func TestOpenAPIIsWhatTheServerAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, everyAnswer) // where no time passes, or on a slow machine there is always room for one more start
}

func everyAnswer(t *testing.T) {
	t.Helper()
	fleet := withFleet(t)
	g := newRig(t, func(o *httpapi.Options) { withAuth(o); fleet(o) })
	for _, op := range g.spec.operations(t) {
		driveCommon(g, op, fleet)
		if goodBody(op) != "" {
			driveBody(g, op)
		}
	}
	driveLocks(g)
	driveReload(g)
	driveFleet(g)
	driveChannels(g)
	for _, op := range g.spec.operations(t) {
		for _, status := range op.statuses {
			assert.True(t, g.spec.came[op.id+" "+status], "%s %s is declared and never came", op.id, status)
			for _, code := range g.spec.codes(t, op, status) {
				assert.True(t, g.spec.came[op.id+" "+status+" "+code], "%s %s %s is declared and never came", op.id, status, code)
			}
		}
	}
}

// codes are what the document says a problem's code can be.
func (s *spec) codes(t *testing.T, op operation, status string) []string {
	t.Helper()
	v, _ := s.at(t, op.pointer+"/responses/"+status)
	content, _ := object(t, v)["content"].(map[string]any)
	media, ok := content["application/problem+json"].(map[string]any)
	if !ok {
		return nil
	}
	all, ok := object(t, media["schema"])["allOf"].([]any)
	require.True(t, ok)
	code, _ := object(t, object(t, all[1])["properties"])["code"].(map[string]any)
	enum, _ := code["enum"].([]any)
	var codes []string
	for _, c := range enum {
		text, ok := c.(string)
		require.True(t, ok)
		codes = append(codes, text)
	}
	return codes
}

// on answers the same questions on another store or with another readiness.
func (g *rig) on(change func(o *httpapi.Options)) *rig {
	other := newRig(g.T, func(o *httpapi.Options) {
		withAuth(o)
		change(o)
	})
	other.spec = g.spec
	return other
}

// driveCommon brings the answers that most operations share.
func driveCommon(g *rig, op operation, fleet func(o *httpapi.Options)) {
	name, admin := pathOf(op, "common"), []string{"Authorization", "Bearer admin"}
	body := goodBody(op)
	away := g.on(func(o *httpapi.Options) {
		fleet(o)
		o.Locks, o.Fleet = brokenStore{err: errors.New("refused")}, broken(o.Fleet, func() error { return errors.New("refused") })
		o.Ready = func(context.Context) error { return errors.New("refused") }
	})
	panics := g.on(func(o *httpapi.Options) {
		fleet(o)
		o.Locks, o.Fleet = brokenStore{}, broken(o.Fleet, func() error { panic("secret") })
		o.Ready = func(context.Context) error { panic("secret") }
	})
	wrongHost := func() {
		r := httptest.NewRequestWithContext(g.Context(), op.method, name, http.NoBody)
		r.Host = "rebound.example"
		g.send(r)
	}
	g.ask(op.method, name, body, admin...)
	wrongHost()
	away.ask(op.method, name, body, admin...)
	panics.ask(op.method, name, body, admin...)
	if op.public {
		return
	}
	g.ask(op.method, name, body)
	g.ask(op.method, name, body, "Authorization", "Bearer nobody")
	g.ask(op.method, name, body, "Authorization", "Bearer unavailable")
	g.ask(op.method, name, body, "Authorization", "Bearer panic")
	g.ask(op.method, name+"?x=1", body, admin...)
	g.ask(op.method, pathOf(op, "%2e%2e"), body, admin...)
	if op.id == "listLocks" {
		g.ask(op.method, name+"?limit=0", "", admin...)
	}
	if op.method != http.MethodGet {
		g.ask(op.method, name, body, append(admin, "Sec-Fetch-Site", "cross-site")...)
	}
}

// driveBody brings what is wrong with bodies.
func driveBody(g *rig, op operation) {
	name, admin := pathOf(op, "body"), []string{"Authorization", "Bearer admin"}
	g.ask(op.method, name, `{`, admin...)
	g.ask(op.method, name, `{}`, admin...)
	g.ask(op.method, name, `{}`, append(admin, "Content-Type", "text/plain")...)
	g.ask(op.method, name, strings.Repeat(" ", 64<<10+1), admin...)
	r := httptest.NewRequestWithContext(g.Context(), op.method, name, slowBody{})
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer admin")
	g.send(r)
}

// slowBody is a body as the server sees it when the read timeout has struck.
type slowBody struct{}

func (slowBody) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// driveLocks brings what depends on the state of locks.
func driveLocks(g *rig) {
	const admin = "Bearer admin"
	do := func(method, at, body, token string) { g.ask(method, at, body, "Authorization", token) }
	do(http.MethodPost, path("team/a"), `{"owner": "A", "ttl_seconds": 60}`, "Bearer locker")
	do(http.MethodPost, path("team/a"), `{"owner": "A", "ttl_seconds": 60}`, "Bearer locker2") // held
	do(http.MethodGet, path("team/a"), "", admin)
	do(http.MethodGet, path("none"), "", admin)
	do(http.MethodGet, "/locks", "", admin)
	do(http.MethodPost, path("team/a", "/renew"), `{"owner": "A", "ttl_seconds": 60}`, "Bearer locker")
	do(http.MethodPost, path("team/a", "/renew"), `{"owner": "B", "ttl_seconds": 60}`, "Bearer locker")
	do(http.MethodPost, path("team/a", "/force-release"), `{"fencing_token": 99, "reason": "x"}`, admin)
	do(http.MethodPost, path("none", "/force-release"), `{"fencing_token": 1, "reason": "x"}`, admin)
	do(http.MethodDelete, path("team/a"), `{"owner": "B"}`, "Bearer locker")
	do(http.MethodDelete, path("team/a"), `{"owner": "A", "fencing_token": 99}`, "Bearer locker")
	do(http.MethodDelete, path("team/a"), `{"owner": "A"}`, "Bearer locker")
	do(http.MethodDelete, path("team/a"), `{"owner": "A"}`, "Bearer locker")
	w := g.ask(http.MethodPost, path("team/b"), `{"owner": "A", "ttl_seconds": 60}`, "Authorization", admin)
	token, err := json.Marshal(decode[acquireJSON](g.T, w).Lock.FencingToken)
	require.NoError(g, err)
	do(http.MethodPost, path("team/b", "/force-release"), `{"fencing_token": `+string(token)+`, "reason": "x"}`, admin)
}

// The judge itself: answers that are not in the document are found.
func TestOpenAPIJudgeFindsDifferences(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *httptest.ResponseRecorder){
		"status":       func(w *httptest.ResponseRecorder) { w.Code = http.StatusTeapot },
		"header":       func(w *httptest.ResponseRecorder) { w.Header().Set("X-More", "1") },
		"no header":    func(w *httptest.ResponseRecorder) { w.Header().Del("X-Request-Id") },
		"content type": func(w *httptest.ResponseRecorder) { w.Header().Set("Content-Type", "text/html") },
		"body":         func(w *httptest.ResponseRecorder) { w.Body = bytes.NewBufferString(`{"status": "well"}`) },
		"more body":    func(w *httptest.ResponseRecorder) { w.Body = bytes.NewBufferString(`{"status": "ok", "more": 1}`) },
	} {
		s, r := newSpec(t), request(t, http.MethodGet, "/healthz")
		w := ask(httpapi.New(httpapi.Options{}), r)
		change(w)
		assert.True(t, fails(func(t *testing.T) { t.Helper(); s.check(t, r, w) }), name)
	}
}

// fails reports whether a check fails, on a T of its own.
func fails(check func(t *testing.T)) bool {
	var inner testing.T
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine that it is called in
		defer close(done)
		check(&inner)
	}()
	<-done
	return inner.Failed()
}

func TestEveryOperationIsARoute(t *testing.T) {
	t.Parallel()
	var documented []string
	for _, op := range newSpec(t).operations(t) {
		documented = append(documented, op.method+" "+op.path+" "+op.id)
	}
	var routed []string
	for _, r := range httpapi.RouteTable() {
		routed = append(routed, r.Method+" "+r.Path+" "+r.Operation)
	}
	slices.Sort(documented)
	slices.Sort(routed)
	assert.Equal(t, documented, routed)
}

// The page about the API has every code and every path of the document.
func TestThePageAboutTheAPIIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/http-api.md")
	require.NoError(t, err)
	s := newSpec(t)
	for _, op := range s.operations(t) {
		assert.Contains(t, string(text), "`"+op.method+" "+op.path, op.id)
		for _, status := range op.statuses {
			for _, code := range s.codes(t, op, status) {
				assert.Contains(t, string(text), "| "+status+" | `"+code+"` |", op.id)
			}
		}
	}
}
