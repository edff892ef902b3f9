package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

var _ scheduler.Observer = (*Metrics)(nil)

// label is what tells jobs apart; "job" belongs to Prometheus.
const label = "job_name"

func (m *Metrics) makeRuns() {
	m.runs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cronlatch_runs_total",
		Help: "Runs whose end this replica has written into the ledger, by job, outcome and trigger; skipped and missed ones never began.",
	}, []string{label, "outcome", "trigger"})
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "cronlatch_run_duration_seconds",
		Help:    "From the start of a run on this replica to the death of its whole process tree, by the boot clock.",
		Buckets: []float64{.1, 1, 5, 30, 60, 300, 900, 3600, 14400, 86400},
	}, []string{label})
	m.startDelay = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "cronlatch_run_start_delay_seconds",
		Help:    "From the instant at which a run was due to its claim by this replica, by the database's clock.",
		Buckets: []float64{.1, .5, 1, 2, 5, 15, 60, 300, 3600},
	}, []string{label})
}

// Know says which jobs there are from now on. Series of other jobs go; those of a new one begin at 0.
func (m *Metrics) Know(all []*jobs.Job) {
	known := make(map[string]*jobs.Job, len(all))
	for _, j := range all {
		known[j.Name] = j
	}
	m.knowing.Lock()
	defer m.knowing.Unlock()
	for name := range m.known {
		if known[name] == nil {
			gone := prometheus.Labels{label: name}
			m.runs.DeletePartialMatch(gone)
			m.duration.DeletePartialMatch(gone)
			m.startDelay.DeletePartialMatch(gone)
		}
	}
	for name := range known {
		m.duration.WithLabelValues(name)
		m.startDelay.WithLabelValues(name)
	}
	m.known = known
}

// names are the known jobs, sorted.
func (m *Metrics) jobs() (names []string, known map[string]*jobs.Job) {
	m.knowing.RLock()
	defer m.knowing.RUnlock()
	return slices.Sorted(maps.Keys(m.known)), m.known // the map is replaced, never changed
}

// name is the label of a job; the caller holds knowing.
func (m *Metrics) name(job string) string {
	if m.known[job] == nil {
		return ""
	}
	return job
}

// Claimed counts a run that begins here.
func (m *Metrics) Claimed(r *jobs.Run) {
	m.count(r.Job, 1)
	if r.StartedAt == nil {
		return
	}
	m.knowing.RLock()
	defer m.knowing.RUnlock()
	m.startDelay.WithLabelValues(m.name(r.Job)).Observe(max(0, r.StartedAt.Sub(r.DueAt).Seconds()))
}

// Ended counts the end of a run.
func (m *Metrics) Ended(e *scheduler.Ending) {
	if e.Claimed {
		m.count(e.Run.Job, -1)
	}
	m.knowing.RLock()
	defer m.knowing.RUnlock()
	name := m.name(e.Run.Job)
	if e.Took > 0 {
		m.duration.WithLabelValues(name).Observe(e.Took.Seconds())
	}
	if e.Written {
		m.runs.WithLabelValues(name, outcomeOf(e.Run), triggerOf(e.Run)).Inc()
	}
}

func (m *Metrics) count(job string, by int) {
	m.counts.Lock()
	defer m.counts.Unlock()
	if m.active[job] += by; m.active[job] == 0 {
		delete(m.active, job)
	}
}

// running are the runs of this replica by the label of their job; every known job has a number.
func (m *Metrics) running() map[string]int {
	names, known := m.jobs()
	n := make(map[string]int, len(names)+1)
	for _, name := range names {
		n[name] = 0
	}
	m.counts.Lock()
	defer m.counts.Unlock()
	for job, k := range m.active {
		if known[job] == nil {
			job = ""
		}
		n[job] += k
	}
	return n
}

// other is the label of what this version does not know: a row of a later one.
const other = "other"

func outcomeOf(r *jobs.Run) string {
	switch r.Outcome {
	case jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeCancelled, jobs.OutcomeSkipped,
		jobs.OutcomeMissed, jobs.OutcomeLost:
		return string(r.Outcome)
	default:
		return other
	}
}

func triggerOf(r *jobs.Run) string {
	switch r.Trigger {
	case jobs.TriggerSchedule, jobs.TriggerCatchUp, jobs.TriggerManual, jobs.TriggerRetry, jobs.TriggerRecovery, jobs.TriggerBackfill,
		jobs.TriggerAfter, jobs.TriggerOnSuccess, jobs.TriggerOnFailure, jobs.TriggerOnAbort:
		return string(r.Trigger)
	default:
		return other
	}
}
