package tracing_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/cronlatch/cronlatch/internal/tracing"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func nothing(string) string { return "" }

func run(outcome jobs.Outcome, reason jobs.Reason) *jobs.Run {
	return &jobs.Run{ID: 7, Job: "backup", Replica: "a", Attempt: 2, FencingToken: 42, Trigger: jobs.TriggerRetry, Outcome: outcome, Reason: reason}
}

func TestOffByDefault(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{
		"nothing":      {},
		"switched off": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"no exporter":  {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		tracer, err := tracing.Start(tracing.Options{Getenv: func(k string) string { return env[k] }})
		require.NoError(t, err, name)
		require.Nil(t, tracer, name)
		tracer.Claimed(run("", ""))
		tracer.Ended(&scheduler.Ending{Run: run("", ""), Claimed: true})
		assert.Empty(t, tracer.Parent(7))
		tracer.Close()
	}
	_, err := tracing.Start(tracing.Options{Getenv: func(string) string { return "grpc" }})
	require.NoError(t, err, "OTEL_TRACES_EXPORTER is something else")
}

func TestSpanOfARun(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[jobs.Outcome]string{
		jobs.OutcomeSucceeded: "success", jobs.OutcomeFailed: "failure", jobs.OutcomeTimedOut: "timeout",
		jobs.OutcomeCancelled: "cancellation", jobs.OutcomeSkipped: "skip", jobs.OutcomeLost: "error",
	} {
		memory := tracetest.NewInMemoryExporter()
		tracer, err := tracing.Start(tracing.Options{Getenv: nothing, Replica: "a", Version: "1", Exporter: &kept{InMemoryExporter: memory}})
		require.NoError(t, err)
		tracer.SetClosing(time.Minute)
		tracer.Claimed(run("", ""))
		parent := tracer.Parent(7)
		tracer.Ended(&scheduler.Ending{Run: run(outcome, "why"), Claimed: true, Written: true})
		assert.Empty(t, tracer.Parent(7), "the span is over")
		tracer.Ended(&scheduler.Ending{Run: run(outcome, "why"), Written: true}) // one that did not run here
		tracer.Close()
		spans := memory.GetSpans()
		require.Len(t, spans, 1)
		s := spans[0]
		assert.Equal(t, "RUN backup", s.Name)
		assert.Equal(t, "00-"+s.SpanContext.TraceID().String()+"-"+s.SpanContext.SpanID().String()+"-01", parent)
		got := map[string]string{}
		for _, a := range s.Attributes {
			got[string(a.Key)] = a.Value.String()
		}
		assert.Subset(t, got, map[string]string{
			"cicd.pipeline.name": "backup", "cicd.pipeline.run.id": "7", "cicd.pipeline.result": want, "cronlatch.attempt": "2",
			"cronlatch.fencing_token": "42", "cronlatch.outcome": string(outcome), "cronlatch.reason": "why", "cronlatch.replica": "a",
		})
		failed := want == "failure" || want == "timeout" || want == "error"
		assert.Equal(t, failed, s.Status.Code == codes.Error)
	}
}

// kept is an exporter that does not forget at the end.
type kept struct{ *tracetest.InMemoryExporter }

func (*kept) Shutdown(context.Context) error { return nil }

// Spans arrive at a collector that speaks OTLP over HTTP, whoever names it.
func TestCollector(t *testing.T) {
	atCollector(t, func(url string) tracing.Options {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
		return tracing.Options{Getenv: os.Getenv}
	}, "/v1/traces RUN backup ")
}

func TestTheCollectorOfTheConfiguration(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	atCollector(t, func(url string) tracing.Options {
		return tracing.Options{Getenv: os.Getenv, Endpoint: url, Headers: map[string]jobs.Secret{"X-Team": "ops"}}
	}, "/v1/traces RUN backup ops")
	atCollector(t, func(url string) tracing.Options {
		return tracing.Options{Getenv: os.Getenv, Endpoint: url + "/own/path"}
	}, "/own/path RUN backup ")
}

func atCollector(t *testing.T, options func(url string) tracing.Options, want string) {
	t.Helper()
	var mu sync.Mutex
	var names []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		var sent collector.ExportTraceServiceRequest
		assert.NoError(t, proto.Unmarshal(body, &sent))
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range sent.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					names = append(names, r.URL.Path+" "+s.GetName()+" "+r.Header.Get("X-Team"))
				}
			}
		}
	}))
	tracer, err := tracing.Start(options(server.URL))
	require.NoError(t, err)
	tracer.SetClosing(time.Minute)
	tracer.Claimed(run("", ""))
	tracer.Ended(&scheduler.Ending{Run: run(jobs.OutcomeSucceeded, ""), Claimed: true, Written: true})
	tracer.Close()
	server.CloseClientConnections()
	server.Close()
	assert.Equal(t, []string{want}, names)
}

// What is on its way to a collector that never answers is broken off at the end.
func TestSilentCollector(t *testing.T) {
	done, gone := make(chan struct{}), make(chan struct{})
	var left sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see the client go
		select {
		case <-done:
		case <-r.Context().Done():
			left.Do(func() { close(gone) })
		}
	}))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	began := time.Now() // no request begins before that
	tracer, err := tracing.Start(tracing.Options{Getenv: func(k string) string { return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL}[k] }})
	require.NoError(t, err)
	tracer.Claimed(run("", ""))
	tracer.Ended(&scheduler.Ending{Run: run(jobs.OutcomeSucceeded, ""), Claimed: true, Written: true})
	tracer.Close()
	select {
	case <-gone:
	case <-time.After(time.Until(began.Add(tracing.SendTimeout - time.Second))): // the SDK alone would go on for longer
		t.Error("the request that was on its way goes on after Close")
	}
	close(done)
	server.CloseClientConnections()
	server.Close()
}

// A collector that never answers delays no run, and the end by no more than a second.
func TestNobodyWaitsForACollector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &hanging{stopped: make(chan struct{})}
		tracer, err := tracing.Start(tracing.Options{Getenv: nothing, Exporter: e})
		require.NoError(t, err)
		began := time.Now()
		for i := range 5000 { // more than the queue holds
			r := run(jobs.OutcomeSucceeded, "")
			r.ID = int64(i)
			tracer.Claimed(r)
			tracer.Ended(&scheduler.Ending{Run: r, Claimed: true, Written: true})
		}
		assert.Zero(t, time.Since(began))
		tracer.Close()
		assert.LessOrEqual(t, time.Since(began), time.Second)
		synctest.Wait()
		assert.True(t, e.broken.Load(), "what was on its way is broken off")
	})
}

// hanging is an exporter whose collector does not answer.
type hanging struct {
	once    sync.Once
	stopped chan struct{}
	broken  atomic.Bool
}

func (h *hanging) ExportSpans(ctx context.Context, _ []sdk.ReadOnlySpan) error {
	select {
	case <-ctx.Done():
	case <-h.stopped:
		h.broken.Store(true)
	}
	return errors.New("no answer")
}

func (h *hanging) Shutdown(context.Context) error {
	h.once.Do(func() { close(h.stopped) })
	return nil
}
