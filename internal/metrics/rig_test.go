package metrics_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/metrics"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/migrations"
	"github.com/cronlatch/cronlatch/scheduler"
)

const ttl = locking.DefaultTTL

// job is one of every minute unless text says otherwise; "" is a job by hand.
func job(tb testing.TB, name, text string, change func(*jobs.Job)) *jobs.Job {
	tb.Helper()
	resource, err := jobs.ParseTemplate(name, jobs.TemplateOptions{})
	require.NoError(tb, err)
	j := &jobs.Job{
		Name: name, Resource: resource, Command: []string{"true"}, KillAfter: 10 * time.Second, StartDeadline: time.Hour, Enabled: true,
		Overlap: jobs.OverlapSkip, CatchUp: jobs.CatchUp{Policy: jobs.CatchUpLatest, Window: time.Hour, Max: 100}, OnLost: jobs.OnLostFail,
		ExitCodes: jobs.ExitCodes{Success: []int{0}}, OncePer: jobs.OncePerOccurrence,
	}
	if text != "" {
		j.Schedule, err = jobs.ParseSchedule(text, jobs.ScheduleOptions{})
		require.NoError(tb, err)
	}
	if change != nil {
		change(j)
	}
	return j
}

// scrape is everything that /metrics says, by name.
func scrape(tb testing.TB, m *metrics.Metrics) (families map[string]*dto.MetricFamily, text string) {
	tb.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "/metrics", http.NoBody))
	require.Equal(tb, http.StatusOK, w.Code, w.Body.String())
	text = w.Body.String()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(tb, err)
	return families, text
}

// samples are the lines of /metrics that begin with one of the names, without those that are 0.
func samples(tb testing.TB, m *metrics.Metrics, names ...string) []string {
	tb.Helper()
	_, text := scrape(tb, m)
	found := []string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, "{")
		name, _, _ = strings.Cut(name, " ")
		for _, want := range names {
			if name == "cronlatch_"+want && !strings.HasSuffix(line, " 0") {
				found = append(found, strings.TrimPrefix(line, "cronlatch_"))
			}
		}
	}
	return found
}

// replica is the scheduler on a SQLite file in memory, in a synctest bubble, with the metrics of a daemon.
type replica struct {
	t     *testing.T
	url   string
	db    *database.DB
	began time.Time
	m     *metrics.Metrics
	sched *scheduler.Scheduler
	leave func() // and wait
	work  func(a *jobs.Attempt) (time.Duration, jobs.Result)
}

func raise(t *testing.T, known []*jobs.Job, work func(a *jobs.Attempt) (time.Duration, jobs.Result)) *replica {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "cronlatch-metrics-") //nolint:usetesting // thousands of commits should not wait for a disk
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, jobs.Link(known))
	r := &replica{t: t, url: "sqlite:" + filepath.Join(dir, "cronlatch.db"), began: time.Now(), work: work}
	r.db = dbtest.Open(t, r.url)
	require.NoError(t, migrations.Up(t.Context(), r.db.Main))
	r.m = metrics.New(metrics.Options{Fleet: metrics.Fleet{DB: r.db.Main, TTL: ttl}})
	r.m.Know(known)
	store, err := locking.NewStore(r.db.Main)
	require.NoError(t, err)
	boot := func() time.Duration { return time.Since(r.began) }
	keeper, err := locking.NewKeeper(locking.KeeperConfig{
		Store: r.m.Store(store), Boot: boot, Jitter: func() float64 { return 0 }, Observe: r.m.Lock,
	})
	require.NoError(t, err)
	r.m.Keeper(keeper)
	r.sched, err = scheduler.New(scheduler.Options{
		DB: r.db.Main, Keeper: keeper, Start: r.start, Jobs: known, DefinitionsHash: "1", Replica: "a", Host: "h", PID: 1, Nonce: "a",
		Version: "1", Capacity: 8, TTL: ttl, Boot: boot, Log: zaptest.NewLogger(t), Observe: []scheduler.Observer{r.m}, Timed: r.m.Timed,
	})
	require.NoError(t, err)
	r.run(keeper)
	return r
}

func (r *replica) run(keeper *locking.Keeper) {
	ctx, leave := context.WithCancel(context.WithoutCancel(r.t.Context()))
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(r.t.Context()))
	var left sync.WaitGroup
	left.Go(func() { _ = keeper.Run(keeping) })
	left.Go(func() { defer stopKeeping(); assert.NoError(r.t, r.sched.Run(ctx)) })
	r.leave = func() { leave(); left.Wait() }
}

// until lets the time pass to an instant after the beginning.
func (r *replica) until(at time.Duration) { time.Sleep(time.Until(r.began.Add(at))) }

func (r *replica) start(_ context.Context, a jobs.Attempt) (scheduler.Process, error) {
	takes, result := r.work(&a)
	if result.Cause == "" {
		return nil, &jobs.StartError{ExitCode: 127, Message: "no such file"}
	}
	p := &process{done: make(chan struct{}), result: result}
	p.timer = time.AfterFunc(takes, func() { p.end(result) })
	return p, nil
}

// process is what a supervisor would run.
type process struct {
	timer  *time.Timer
	once   sync.Once
	done   chan struct{}
	result jobs.Result
}

func (p *process) Extend(_, _ time.Duration) {}
func (p *process) Done() <-chan struct{}     { return p.done }
func (p *process) Result() jobs.Result       { return p.result }
func (p *process) Stop() {
	p.timer.Stop()
	p.end(jobs.Result{Cause: jobs.CauseStopped, Signal: "SIGTERM"})
}

func (p *process) end(r jobs.Result) {
	p.once.Do(func() { p.result = r; close(p.done) })
}

func exited(code int) jobs.Result { return jobs.Result{Cause: jobs.CauseExited, ExitCode: code} }
