// Package metrics is what a replica tells Prometheus: GET /metrics.
//
// Model: two kinds of figures. What happened here (runs that were claimed or ended by this replica, locks, how long the
// database took) is counted where it happens, through the observers that packages scheduler and locking offer. What is the same
// for the whole fleet (when a job succeeded last, what waits, how many replicas there are) is read from the database when somebody
// asks, by one statement, at most once in 5 s, and every replica says the same.
//
// Guarantees: /metrics answers without the database, too: with cronlatch_db_up 0, the figures of this replica, and nothing that
// would have to be invented. The number of series is bounded by the number of known jobs: outcomes, triggers, results and
// operations are closed sets, and runs of jobs that are not known here count under job_name "". What a known job may count begins
// at 0 when the job is known, so that its first event is an increase, except cronlatch_runs_total, which has too many
// combinations of labels.
//
// Not guaranteed: that a counter and the ledger agree to the last run. An outcome whose COMMIT was not answered may be in the
// ledger and not in a counter; the gauges from the database are the truth.
//
// Tests play stories of the scheduler in a synctest bubble and compare the counters exactly; testdata/metrics.txt and
// docs/metrics.md have every metric, and go test ./internal/metrics -update writes both.
package metrics

import (
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// Options configure Metrics.
type Options struct {
	Fleet   Fleet
	Version string      // of the program; "" is "dev"
	Log     *zap.Logger // nil is silence
}

// Metrics are the figures of one replica. All methods are safe for concurrent use.
type Metrics struct {
	o        Options
	registry *prometheus.Registry

	// knowing keeps a series of a job that is going from coming back through somebody who looked the job up before.
	knowing sync.RWMutex
	known   map[string]*jobs.Job
	active  map[string]int // claimed runs by their job's real name; guarded by counting
	counts  sync.Mutex

	runs                 *prometheus.CounterVec
	duration, startDelay *prometheus.HistogramVec
	acquisitions         *prometheus.CounterVec
	hold, slack          prometheus.Histogram
	renewFailures, lost  prometheus.Counter
	takeovers            prometheus.Counter
	queries              *prometheus.HistogramVec
	reloadOK, reloadedAt prometheus.Gauge
	held                 atomic.Pointer[func() int]
}

// New returns metrics that know no jobs yet.
func New(o Options) *Metrics {
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	m := &Metrics{o: o, registry: prometheus.NewRegistry(), active: map[string]int{}}
	m.makeRuns()
	m.makeLocks()
	m.makeProcess()
	m.registry.MustRegister(
		m.runs, m.duration, m.startDelay, m.acquisitions, m.hold, m.slack, m.renewFailures, m.lost, m.takeovers, m.queries,
		m.reloadOK, m.reloadedAt, &fleetCollector{m: m, read: newFacts(o.Fleet, m.Timed)},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func (m *Metrics) makeProcess() {
	m.queries = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "cronlatch_db_query_duration_seconds",
		Help:    "How long one operation of the database took, as this replica saw it; one that was given up counts with the time until then.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"op"})
	for _, op := range ops() {
		m.queries.WithLabelValues(string(op))
	}
	m.reloadOK = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "cronlatch_config_last_reload_successful",
		Help: "Whether the configuration that was read last was taken (1), or rejected (0) so that the one before it still holds.",
	})
	m.reloadedAt = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "cronlatch_config_last_reload_success_timestamp_seconds",
		Help: "When a configuration was taken last, by this host's clock.",
	})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "cronlatch_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": m.o.Version, "go_version": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(build)
}

// The operations that are not the scheduler's.
const (
	opRenew   scheduler.Op = "renew"
	opAcquire scheduler.Op = "acquire"
	opRelease scheduler.Op = "release"
	opMetrics scheduler.Op = "metrics" // the statement behind /metrics
)

func ops() []scheduler.Op { return append(scheduler.Ops(), opRenew, opAcquire, opRelease, opMetrics) }

// Timed is a scheduler.Options.Timed.
func (m *Metrics) Timed(op scheduler.Op, took time.Duration) {
	m.queries.WithLabelValues(string(op)).Observe(took.Seconds())
}

// Reloaded tells whether a configuration that was read was taken.
func (m *Metrics) Reloaded(ok bool) {
	if !ok {
		m.reloadOK.Set(0)
		return
	}
	m.reloadOK.Set(1)
	m.reloadedAt.SetToCurrentTime()
}

// Handler answers with all metrics. Whether the caller may see them is not its question.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: errorLog{m.o.Log}, ErrorHandling: promhttp.ContinueOnError,
	})
}

// errorLog is where client_golang says what it could not gather.
type errorLog struct{ log *zap.Logger }

func (l errorLog) Println(v ...any) { l.log.Warn("metrics could not be gathered", zap.Any("error", v)) }
