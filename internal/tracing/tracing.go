// Package tracing tells an OpenTelemetry collector about runs: one span for each, from its claim by this replica to the end of
// its process tree, named by the conventions for CI/CD pipelines. It is off unless OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set; the other variables of the OpenTelemetry SDK (headers, certificates, sampling, resource
// attributes) hold as everywhere.
//
// What runs gets the span as its parent: TRACEPARENT in a command's environment, the header traceparent in a request.
//
// Guarantees: no run waits for a collector. Spans go into a queue of bounded length, which drops what has no room; sending is
// one goroutine's work, and Close takes no longer than a second.
//
// Not guaranteed: that a span arrives. A replica that is killed takes its open spans with it.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

const (
	queueLength  = 2048
	sendTimeout  = 10 * time.Second // one batch
	retryFor     = 5 * time.Second
	closeTimeout = 800 * time.Millisecond // and then what is on its way is broken off
)

// Options configure a Tracer.
type Options struct {
	Getenv  func(string) string
	Replica string
	Host    string
	Version string
	Log     *zap.Logger // nil is silence
	// Endpoint is the URL of a collector, before the one that the environment names; "" is that one. Without a path it is
	// /v1/traces there.
	Endpoint string
	Headers  map[string]jobs.Secret // of each request to Endpoint; nil is none
	// Exporter takes the spans in place of the one that the environment asks for; nil is that one.
	Exporter sdk.SpanExporter
}

var _ scheduler.Observer = (*Tracer)(nil)

// Tracer makes the spans. A nil Tracer makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	exporter *quiet
	tracer   trace.Tracer
	closing  time.Duration // what Close may take

	mu   sync.Mutex
	open map[int64]trace.Span // by the run's id
}

// Start returns nil when nobody asks for traces. It does not wait for the collector.
func Start(o Options) (*Tracer, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	exporter := o.Exporter
	if exporter == nil {
		if !o.asked() {
			return nil, nil //nolint:nilnil // a nil Tracer is one that does nothing
		}
		if p := protocol(o.Getenv); o.Endpoint == "" && strings.HasPrefix(p, "grpc") {
			return nil, fmt.Errorf("tracing: OTEL_EXPORTER_OTLP_PROTOCOL is %q: set it to http/protobuf, and the endpoint to the collector's port for it (4318)", p)
		}
		var err error
		exporter, err = otlptracehttp.New(context.Background(), o.collector()...)
		if err != nil {
			return nil, fmt.Errorf("tracing: %w", err)
		}
	}
	t := &Tracer{exporter: &quiet{SpanExporter: exporter, log: o.Log}, closing: closeTimeout, open: map[int64]trace.Span{}}
	t.provider = sdk.NewTracerProvider(
		sdk.WithBatcher(t.exporter, sdk.WithMaxQueueSize(queueLength), sdk.WithExportTimeout(sendTimeout)),
		sdk.WithResource(resourceOf(&o)),
	)
	t.tracer = t.provider.Tracer("github.com/cronlatch/cronlatch", trace.WithInstrumentationVersion(o.Version))
	return t, nil
}

// collector is where the exporter sends to, and how long it tries.
func (o *Options) collector() []otlptracehttp.Option {
	all := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: 250 * time.Millisecond, MaxInterval: 2 * time.Second, MaxElapsedTime: retryFor,
	})}
	if o.Endpoint == "" {
		return all // the exporter reads the environment itself
	}
	headers := map[string]string{}
	for name, value := range o.Headers {
		headers[name] = value.Reveal()
	}
	endpoint := o.Endpoint
	if u, err := url.Parse(endpoint); err == nil && (u.Path == "" || u.Path == "/") {
		endpoint = u.JoinPath("v1", "traces").String()
	}
	return append(all, otlptracehttp.WithEndpointURL(endpoint), otlptracehttp.WithHeaders(headers))
}

// asked reports whether a collector is named, and the environment does not switch the SDK or its traces off.
func (o *Options) asked() bool {
	getenv := o.Getenv
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if e := getenv("OTEL_TRACES_EXPORTER"); e != "" && e != "otlp" {
		return false
	}
	return o.Endpoint != "" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func protocol(getenv func(string) string) string {
	if p := getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"); p != "" {
		return p
	}
	return getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
}

// resourceOf says who makes the spans; the environment (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) has the last word.
func resourceOf(o *Options) *resource.Resource {
	own := resource.NewSchemaless(semconv.ServiceName("cronlatch"), semconv.ServiceVersion(o.Version),
		semconv.ServiceInstanceID(o.Replica), semconv.HostName(o.Host))
	merged, err := resource.Merge(own, resource.Environment())
	if err != nil {
		return own
	}
	return merged
}

// Claimed begins the span of a run.
func (t *Tracer) Claimed(r *jobs.Run) {
	if t == nil {
		return
	}
	_, span := t.tracer.Start(context.Background(), "RUN "+r.Job, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		semconv.CICDPipelineName(r.Job), semconv.CICDPipelineRunID(strconv.FormatInt(r.ID, 10)), semconv.CICDPipelineActionNameRun,
		attribute.String("cronlatch.replica", r.Replica), attribute.Int("cronlatch.attempt", r.Attempt),
		attribute.Int64("cronlatch.fencing_token", r.FencingToken), attribute.String("cronlatch.resource", r.Resource),
		attribute.String("cronlatch.trigger", string(r.Trigger)), attribute.String("cronlatch.occurrence", r.Occurrence),
		attribute.String("cronlatch.scheduled_at", r.ScheduledAt.UTC().Format(time.RFC3339)),
	))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[r.ID] = span
}

// Ended ends it. A run that did not run here has none.
func (t *Tracer) Ended(e *scheduler.Ending) {
	if t == nil || !e.Claimed {
		return
	}
	t.mu.Lock()
	span := t.open[e.Run.ID]
	delete(t.open, e.Run.ID)
	t.mu.Unlock()
	if span == nil {
		return
	}
	result, failed := resultOf(e.Run.Outcome)
	span.SetAttributes(result, attribute.String("cronlatch.outcome", string(e.Run.Outcome)), attribute.Bool("cronlatch.written", e.Written))
	if e.Run.Reason != "" {
		span.SetAttributes(attribute.String("cronlatch.reason", string(e.Run.Reason)))
	}
	if failed {
		span.SetStatus(codes.Error, string(e.Run.Reason))
		span.SetAttributes(semconv.ErrorTypeKey.String(string(e.Run.Reason)))
	}
	span.End()
}

// resultOf is an outcome in the words of the conventions.
func resultOf(o jobs.Outcome) (result attribute.KeyValue, failed bool) {
	switch o {
	case jobs.OutcomeSucceeded:
		return semconv.CICDPipelineResultSuccess, false
	case jobs.OutcomeFailed:
		return semconv.CICDPipelineResultFailure, true
	case jobs.OutcomeTimedOut:
		return semconv.CICDPipelineResultTimeout, true
	case jobs.OutcomeCancelled:
		return semconv.CICDPipelineResultCancellation, false
	case jobs.OutcomeSkipped:
		return semconv.CICDPipelineResultSkip, false
	default: // lost
		return semconv.CICDPipelineResultError, true
	}
}

// Parent is the span of a claimed run as its work is told: a traceparent of W3C Trace Context; "" without a span.
func (t *Tracer) Parent(run int64) string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	span := t.open[run]
	t.mu.Unlock()
	if span == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), carrier)
	return carrier.Get("traceparent")
}

// Close sends what is in the queue, within a second. Spans that are still open are not sent.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.closing)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.exporter.say(err)
		// The SDK leaves its goroutine with the batch that is on its way (opentelemetry-go issue 8631); this breaks that off.
		_ = t.exporter.Shutdown(ctx) // ctx is over: it says so
	}
}

// quiet is an exporter whose faults are said once, until it works again; the SDK would print each of them on stderr.
type quiet struct {
	sdk.SpanExporter

	log    *zap.Logger
	broken atomic.Bool
}

// ExportSpans sends a batch, or drops it.
func (q *quiet) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := q.SpanExporter.ExportSpans(ctx, spans); err != nil {
		q.say(err)
	} else if q.broken.Swap(false) {
		q.log.Info("traces are sent again")
	}
	return nil
}

func (q *quiet) say(err error) {
	if !q.broken.Swap(true) && !errors.Is(err, context.Canceled) {
		q.log.Warn("traces could not be sent; runs do not wait for them", zap.Error(err))
	}
}
