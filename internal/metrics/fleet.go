package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/jobs"
)

// fleetCollector says what is the same on every replica, and what follows from the jobs' definitions.
type fleetCollector struct {
	m    *Metrics
	read *facts
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("cronlatch_"+name, help, labels, nil)
}

//nolint:gochecknoglobals // descriptions are constants
var (
	descUp = desc("db_up", "Whether the database answered when these metrics were asked for. Without it, what is read from it is missing.")

	descOffset = desc("db_clock_offset_seconds",
		"The database's clock minus this host's clock, to half the time that the statement took. Runs follow the database's clock.")

	descReplicas = desc("replicas", "Replicas that the database has heard of within a TTL.")

	descDefinitions = desc("replicas_definitions",
		"How many different sets of job definitions those replicas have; 1 unless a new configuration is being rolled out.")

	descOutboxPending = desc("notifications_pending", "Notifications that were not sent yet.")

	descOutboxGivenUp = desc("notifications_given_up", "Notifications that were given up within the last hour.")

	descWaiting = desc("runs_waiting", "Runs that are due and wait, in the whole fleet; those of jobs that are not known here under job_name \"\".", label)

	descActive = desc("runs_active", "Runs that this replica has claimed and whose end is not written yet.", label)

	descLastSuccess = desc("job_last_success_timestamp_seconds",
		"When the job succeeded last, by the database's clock; 0 when it never did.", label)

	descFirstPlanned = desc("job_first_planned_timestamp_seconds",
		"When the first run of the job that is still in the ledger was planned. A job that never succeeded is overdue from then on.", label)

	descLastRun = desc("job_last_run_success",
		"Whether the job's last occurrence that came to something succeeded (1), or failed, timed out, was lost or missed (0). "+
			"One that is still repeated, and those that were skipped, cancelled or paused, do not count.", label)

	descNext = desc("job_next_run_timestamp_seconds", "The next instant of the job's schedule, or when a run that waits becomes due.", label)

	descMaxAge = desc("job_max_age_seconds", "How old the job's last success may become: max_age.", label)

	descPaused = desc("job_paused", "Whether the job is paused, by itself or with all jobs.", label)
)

// Describe names every metric.
func (c *fleetCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descUp, descOffset, descReplicas, descDefinitions, descOutboxPending, descOutboxGivenUp, descWaiting, descActive,
		descLastSuccess, descFirstPlanned, descLastRun, descNext, descMaxAge, descPaused,
	} {
		ch <- d
	}
}

// Collect reads the database, unless somebody has just done so.
func (c *fleetCollector) Collect(ch chan<- prometheus.Metric) {
	for name, n := range c.m.running() {
		gauge(ch, descActive, float64(n), name)
	}
	names, known := c.m.jobs()
	for name, j := range known {
		if j.MaxAge > 0 && j.Enabled {
			gauge(ch, descMaxAge, j.MaxAge.Seconds(), name)
		}
	}
	f, err := c.read.now(names)
	if err != nil {
		gauge(ch, descUp, 0)
		c.m.o.Log.Debug("the metrics of the fleet could not be read", zap.Error(err))
		return
	}
	gauge(ch, descUp, 1)
	gauge(ch, descOffset, f.offset.Seconds())
	gauge(ch, descReplicas, float64(f.Replicas))
	gauge(ch, descDefinitions, float64(f.Definitions))
	gauge(ch, descOutboxPending, float64(f.OutboxPending))
	gauge(ch, descOutboxGivenUp, float64(f.OutboxGivenUp))
	elsewhere := f.Waiting
	for i := range f.jobs {
		j := &f.jobs[i]
		elsewhere -= j.Waiting
		if known[j.Job] != nil { // it may have gone since the facts were read
			j.collect(ch, known[j.Job], f.Now.Time)
		}
	}
	gauge(ch, descWaiting, float64(elsewhere), "")
}

func (j *jobFacts) collect(ch chan<- prometheus.Metric, job *jobs.Job, now time.Time) {
	gauge(ch, descWaiting, float64(j.Waiting), j.Job)
	gauge(ch, descPaused, number(j.Paused), j.Job)
	gauge(ch, descLastSuccess, seconds(j.LastSuccess.Time), j.Job)
	if !j.FirstPlanned.IsZero() {
		gauge(ch, descFirstPlanned, seconds(j.FirstPlanned.Time), j.Job)
	}
	if j.LastOutcome != "" {
		gauge(ch, descLastRun, number(j.LastOutcome == string(jobs.OutcomeSucceeded)), j.Job)
	}
	if next := j.next(job, now); !next.IsZero() {
		gauge(ch, descNext, seconds(next), j.Job)
	}
}

// next is the earlier one of the schedule's next instant and the next run that becomes due; zero is none.
func (j *jobFacts) next(job *jobs.Job, now time.Time) time.Time {
	next := j.NextDue.Time
	if job.Schedule == nil || !job.Enabled {
		return next
	}
	if at := job.Schedule.Next(now); next.IsZero() || (!at.IsZero() && at.Before(next)) {
		return at
	}
	return next
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// seconds is an instant as Prometheus has it; the zero time is 0.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1e3
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
