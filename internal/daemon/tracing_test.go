package daemon

import (
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// spans is a collector of OTLP over HTTP, and a place that jobs call.
type spans struct {
	mu     sync.Mutex
	all    []*trace.Span
	called map[int64]string // the header traceparent of each call to /job, by the run
}

func (c *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.URL.Path == "/job" {
		id, _ := strconv.ParseInt(r.Header.Get(jobs.HeaderIdempotencyKey), 10, 64)
		c.called[id] = r.Header.Get("Traceparent")
		return
	}
	body, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, rs := range sent.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			c.all = append(c.all, ss.GetSpans()...)
		}
	}
}

// parents are the spans by the run that they are about, as W3C Trace Context names a parent.
func (c *spans) parents() map[int64]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := map[int64]string{}
	for _, s := range c.all {
		for _, a := range s.GetAttributes() {
			if a.GetKey() == "cicd.pipeline.run.id" {
				id, _ := strconv.ParseInt(a.GetValue().GetStringValue(), 10, 64)
				of[id] = fmt.Sprintf("00-%s-%s-01", hex.EncodeToString(s.GetTraceId()), hex.EncodeToString(s.GetSpanId()))
			}
		}
	}
	return of
}

const tellTheirParents = `
jobs:
  tell: {schedule: "* * * * * *", seconds: true, command: ["/bin/sh", "-c", "echo $TRACEPARENT"]}
  call: {schedule: "* * * * * *", seconds: true, http: {url: "%s/job", allow: [127.0.0.1]}}
`

// told boots a daemon whose environment has a trace of its own, lets each job succeed twice, and returns what the work of these
// runs was told. The daemon leaves when all of them are exported, or at once when nothing is to be.
func (c *spans) told(t *testing.T, yaml string, exported bool) map[int64]string {
	t.Helper()
	url := dbtest.SQLiteURL(t)
	d := serve(t, url, yaml, func(o *Options) {
		o.Getenv = func(name string) string {
			return map[string]string{"TRACEPARENT": "00-0000000000000000000000000000000a-000000000000000b-01"}[name]
		}
	})
	l := ledger(t, url)
	of := map[string][]jobs.Run{}
	require.Eventually(t, func() bool {
		clear(of)
		runs, err := l.List(t.Context(), jobs.RunFilter{Outcome: jobs.OutcomeSucceeded})
		for _, r := range runs {
			of[r.Job] = append(of[r.Job], r)
		}
		return err == nil && len(of["tell"]) >= 2 && len(of["call"]) >= 2
	}, patience, 50*time.Millisecond)
	parents := map[int64]string{}
	for _, r := range of["tell"] {
		out, err := l.Output(t.Context(), r.ID)
		require.NoError(t, err)
		parents[r.ID] = strings.TrimSpace(string(out.Head))
	}
	c.mu.Lock()
	for _, r := range of["call"] {
		assert.Contains(t, c.called, r.ID)
		parents[r.ID] = c.called[r.ID]
	}
	c.mu.Unlock()
	require.Eventually(t, func() bool { // the end of the daemon has a second for it, which a busy machine may not have
		sent := c.parents()
		return !exported || !slices.ContainsFunc(slices.Collect(maps.Keys(parents)), func(id int64) bool { return sent[id] == "" })
	}, patience, 50*time.Millisecond)
	d.leave(t)
	return parents
}

// The work of a run finds the span of just this run, in the environment or in the header, and the collector gets that span.
func TestTheWorkIsPartOfTheExportedSpan(t *testing.T) {
	t.Parallel()
	c := &spans{called: map[int64]string{}}
	server := httptest.NewServer(c)
	defer server.Close()
	seen := c.told(t, "tracing: {endpoint: "+server.URL+"}\n"+fmt.Sprintf(tellTheirParents, server.URL), true)
	exported := c.parents()
	for id, parent := range seen {
		assert.Equal(t, exported[id], parent, "run %d of %v", id, exported)
	}
}

// Without a collector there is no trace to be part of: not that of whoever started the daemon, which ended long ago.
func TestWithoutTracesThereIsNoParent(t *testing.T) {
	t.Parallel()
	c := &spans{called: map[int64]string{}}
	server := httptest.NewServer(c)
	defer server.Close()
	for id, parent := range c.told(t, fmt.Sprintf(tellTheirParents, server.URL), false) {
		assert.Empty(t, parent, "run %d", id)
	}
	for _, header := range c.called {
		assert.Empty(t, header)
	}
	assert.Empty(t, c.parents())
}
