package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

// The results of an acquisition.
const (
	resultAcquired = "acquired"
	resultTakeover = "takeover" // acquired, from an owner whose lock had expired
	resultExtended = "extended" // by the owner that held it already
	resultBusy     = "busy"     // another owner holds it
	resultError    = "error"    // the outcome is not known
)

func (m *Metrics) makeLocks() {
	m.acquisitions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cronlatch_lock_acquisitions_total",
		Help: "Attempts to take a lock, for runs of this replica and through its API, by result. A run looks whether its lock is free before it tries, so it is rarely busy.",
	}, []string{"result"})
	for _, result := range []string{resultAcquired, resultTakeover, resultExtended, resultBusy, resultError} {
		m.acquisitions.WithLabelValues(result)
	}
	m.takeovers = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "cronlatch_lock_takeovers_total",
		Help: "Locks that were taken from an owner whose lock had expired without a release.",
	})
	m.hold = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "cronlatch_lock_hold_seconds",
		Help:    "How long the locks of runs on this replica were held, from the grant to the release or the loss.",
		Buckets: []float64{.1, 1, 5, 30, 60, 300, 900, 3600, 14400, 86400},
	})
	m.slack = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "cronlatch_lock_renewal_slack_seconds",
		Help:    "How much of the lease was left when a renewal was confirmed; work is stopped when it reaches 0.",
		Buckets: []float64{.25, .5, 1, 2.5, 5, 10, 15, 20, 30, 60, 300},
	})
	m.renewFailures = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "cronlatch_lock_renew_failures_total",
		Help: "Attempts to renew a lock of this replica whose outcome is not known. The next attempt follows within a tenth of the TTL.",
	})
	m.lost = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "cronlatch_lock_lost_total",
		Help: "Locks of this replica that were lost while their run went on; the run was stopped.",
	})
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cronlatch_locks_held", Help: "Locks that this replica renews.",
	}, m.heldNow))
}

func (m *Metrics) heldNow() float64 {
	if held := m.held.Load(); held != nil {
		return float64((*held)())
	}
	return 0
}

// Keeper says who knows how many locks are held.
func (m *Metrics) Keeper(k *locking.Keeper) {
	held := k.Held
	m.held.Store(&held)
}

// Lock is a locking.KeeperConfig.Observe.
func (m *Metrics) Lock(e locking.Event) {
	switch e.Kind {
	case locking.EventKept:
		m.acquired(e.Takeover)
	case locking.EventRenewed:
		m.slack.Observe(e.Slack.Seconds())
	case locking.EventUnconfirmed:
		m.renewFailures.Inc()
	case locking.EventLost:
		m.lost.Inc()
		m.over(e.Held)
	case locking.EventReleased:
		m.over(e.Held)
	}
}

func (m *Metrics) over(held time.Duration) {
	if held > 0 {
		m.hold.Observe(held.Seconds())
	}
}

func (m *Metrics) acquired(takeover bool) {
	if takeover {
		m.takeovers.Inc()
		m.acquisitions.WithLabelValues(resultTakeover).Inc()
		return
	}
	m.acquisitions.WithLabelValues(resultAcquired).Inc()
}

// Store counts what is asked of a store of locks, and times it.
func (m *Metrics) Store(s locking.Store) locking.Store { return &store{s, m} }

type store struct {
	locking.Store

	m *Metrics
}

// timed begins to time an operation; the returned function ends it.
func (s *store) timed(op scheduler.Op) func() {
	began := boottime.Now()
	return func() { s.m.Timed(op, boottime.Now()-began) }
}

func (s *store) Renew(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	defer s.timed(opRenew)()
	return s.Store.Renew(ctx, claims)
}

func (s *store) Release(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	defer s.timed(opRelease)()
	return s.Store.Release(ctx, claims)
}

func (s *store) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	defer s.timed(opAcquire)()
	results, err := s.Store.Acquire(ctx, reqs)
	if err != nil {
		s.m.acquisitions.WithLabelValues(resultError).Add(float64(len(reqs)))
	}
	for i := range results {
		switch r := &results[i]; {
		case !r.Acquired:
			s.m.acquisitions.WithLabelValues(resultBusy).Inc()
		case r.Extended:
			s.m.acquisitions.WithLabelValues(resultExtended).Inc()
		default:
			s.m.acquired(r.Takeover)
		}
	}
	return results, err
}
