// Package alertstest evaluates deploy/alerts.yaml against samples, with the engine of Prometheus. It is a module of its own, so that
// what Prometheus needs stays out of the product's.
package alertstest

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const file = "../alerts.yaml"

// sample is what Prometheus has scraped, a sample a minute from 0 on, and which alerts fire at an instant, each with its job or
// instance. An alert must be silent with the one sample and fire with the other.
type sample struct {
	name   string
	alert  string
	series string // in the notation of promtool: 0+60x30 is 0, 60, 120, ...
	at     time.Duration
	want   []string
}

// fleet is two healthy replicas.
const fleet = `
	up{job="cronlatch", instance="a"} 1x60
	up{job="cronlatch", instance="b"} 1x60
	cronlatch_replicas{instance="a"} 2x60
	cronlatch_replicas{instance="b"} 2x60
`

func samples() []sample {
	return []sample{
		{"a success that is young enough", "CronlatchJobOverdue", `
			cronlatch_job_last_success_timestamp_seconds{job_name="x", instance="a"} 60x60
			cronlatch_job_first_planned_timestamp_seconds{job_name="x", instance="a"} 10x60
			cronlatch_job_max_age_seconds{job_name="x", instance="a"} 1800x60`, 30 * time.Minute, nil},
		{"a success that is too old, on two replicas", "CronlatchJobOverdue", `
			cronlatch_job_last_success_timestamp_seconds{job_name="x", instance="a"} 60x60
			cronlatch_job_first_planned_timestamp_seconds{job_name="x", instance="a"} 10x60
			cronlatch_job_max_age_seconds{job_name="x", instance="a"} 1800x60
			cronlatch_job_last_success_timestamp_seconds{job_name="x", instance="b"} 60x60
			cronlatch_job_first_planned_timestamp_seconds{job_name="x", instance="b"} 10x60
			cronlatch_job_max_age_seconds{job_name="x", instance="b"} 1800x60`, 33 * time.Minute, []string{"x"}},
		{"a job that never succeeded", "CronlatchJobOverdue", `
			cronlatch_job_last_success_timestamp_seconds{job_name="x", instance="a"} 0x60
			cronlatch_job_first_planned_timestamp_seconds{job_name="x", instance="a"} 600x60
			cronlatch_job_max_age_seconds{job_name="x", instance="a"} 1200x60`, 32 * time.Minute, []string{"x"}},
		{"a job that never succeeded, and is too young to be overdue", "CronlatchJobOverdue", `
			cronlatch_job_last_success_timestamp_seconds{job_name="x", instance="a"} 0x60
			cronlatch_job_first_planned_timestamp_seconds{job_name="x", instance="a"} 600x60
			cronlatch_job_max_age_seconds{job_name="x", instance="a"} 1200x60`, 29 * time.Minute, nil},
		{"a job of which nothing was planned", "CronlatchJobOverdue", `
			cronlatch_job_last_success_timestamp_seconds{job_name="x", instance="a"} 0x60
			cronlatch_job_max_age_seconds{job_name="x", instance="a"} 60x60`, 50 * time.Minute, nil},
		{"a paused job", "CronlatchJobOverdue", `
			cronlatch_job_last_success_timestamp_seconds{job_name="x", instance="a"} 60x60
			cronlatch_job_max_age_seconds{job_name="x", instance="a"} 60x60
			cronlatch_job_paused{job_name="x", instance="a"} 1x60
			cronlatch_job_last_success_timestamp_seconds{job_name="y", instance="a"} 60x60
			cronlatch_job_max_age_seconds{job_name="y", instance="a"} 60x60
			cronlatch_job_paused{job_name="y", instance="a"} 0x60`, 10 * time.Minute, []string{"y"}},

		{"a success after a failure", "CronlatchJobFailing", `
			cronlatch_job_last_run_success{job_name="x", instance="a"} 0x10 1x50`, 20 * time.Minute, nil},
		{"a failure", "CronlatchJobFailing", `
			cronlatch_job_last_run_success{job_name="x", instance="a"} 1x10 0x50
			cronlatch_job_last_run_success{job_name="x", instance="b"} 1x10 0x50`, 20 * time.Minute, []string{"x"}},

		{"runs that start in time", "CronlatchRunsStartLate", `
			cronlatch_run_start_delay_seconds_bucket{job_name="x", instance="a", le="60"} 0+1x60
			cronlatch_run_start_delay_seconds_bucket{job_name="x", instance="a", le="+Inf"} 0+1x60
			cronlatch_run_start_delay_seconds_count{job_name="x", instance="a"} 0+1x60`, 20 * time.Minute, nil},
		{"one run that starts late, the first of all", "CronlatchRunsStartLate", `
			cronlatch_run_start_delay_seconds_bucket{job_name="x", instance="a", le="60"} 0x60
			cronlatch_run_start_delay_seconds_bucket{job_name="x", instance="a", le="+Inf"} 0x10 1x50
			cronlatch_run_start_delay_seconds_count{job_name="x", instance="a"} 0x10 1x50
			cronlatch_run_start_delay_seconds_bucket{job_name="x", instance="b", le="60"} 0+1x60
			cronlatch_run_start_delay_seconds_bucket{job_name="x", instance="b", le="+Inf"} 0+1x60
			cronlatch_run_start_delay_seconds_count{job_name="x", instance="b"} 0+1x60`, 20 * time.Minute, []string{"x"}},
		{"one late run half an hour ago", "CronlatchRunsStartLate", `
			cronlatch_run_start_delay_seconds_bucket{job_name="x", instance="a", le="60"} 0x60
			cronlatch_run_start_delay_seconds_bucket{job_name="x", instance="a", le="+Inf"} 0x10 1x50
			cronlatch_run_start_delay_seconds_count{job_name="x", instance="a"} 0x10 1x50`, 40 * time.Minute, nil},

		{"a run that waits now and then", "CronlatchRunsWaiting", `
			cronlatch_runs_waiting{job_name="x", instance="a"} 1x10 0x1 1x50`, 24 * time.Minute, nil},
		{"a run that waits for long, of a job that nobody knows", "CronlatchRunsWaiting", `
			cronlatch_runs_waiting{job_name="x", instance="a"} 0x60
			cronlatch_runs_waiting{job_name="", instance="a"} 2x60`, 24 * time.Minute, []string{""}},

		{"two replicas", "CronlatchNoReplica", fleet, 10 * time.Minute, nil},
		{"no target at all", "CronlatchNoReplica", `up{job="other"} 1x60`, 10 * time.Minute, []string{""}},
		{"no target that answers", "CronlatchNoReplica", `
			up{job="cronlatch", instance="a"} 0x60
			up{job="cronlatch", instance="b"} 0x60`, 10 * time.Minute, []string{""}},
		{"daemons that answer and do not work", "CronlatchNoReplica", `
			up{job="cronlatch", instance="a"} 1x60
			cronlatch_replicas{instance="a"} 0x60`, 10 * time.Minute, []string{""}},
		{"the database is away", "CronlatchNoReplica", `
			up{job="cronlatch", instance="a"} 1x60
			cronlatch_db_up{instance="a"} 0x60`, 10 * time.Minute, nil},

		{"two replicas", "CronlatchReplicaDown", fleet, 20 * time.Minute, nil},
		{"one of two replicas", "CronlatchReplicaDown", `
			up{job="cronlatch", instance="a"} 1x60
			up{job="cronlatch", instance="b"} 0x60
			cronlatch_replicas{instance="a"} 1x60`, 20 * time.Minute, []string{""}},

		{"a configuration that is being rolled out", "CronlatchDefinitionsDiffer", `cronlatch_replicas_definitions{instance="a"} 1x10 2x5 1x40`, 20 * time.Minute, nil},
		{"a replica that was forgotten", "CronlatchDefinitionsDiffer", `cronlatch_replicas_definitions{instance="a"} 1x10 2x50`, 30 * time.Minute, []string{""}},

		{"no lock was lost", "CronlatchLockLost", `cronlatch_lock_lost_total{instance="a"} 3x60`, 30 * time.Minute, nil},
		{"a lock was lost", "CronlatchLockLost", `
			cronlatch_lock_lost_total{instance="a"} 0x25 1x40
			cronlatch_lock_lost_total{instance="b"} 0x60`, 30 * time.Minute, []string{"a"}},

		{"clocks that agree", "CronlatchClockSkew", `cronlatch_db_clock_offset_seconds{instance="a"} -4x60`, 30 * time.Minute, nil},
		{"a clock that is ahead of the database's, and one behind", "CronlatchClockSkew", `
			cronlatch_db_clock_offset_seconds{instance="a"} -6x60
			cronlatch_db_clock_offset_seconds{instance="b"} 6x60
			cronlatch_db_clock_offset_seconds{instance="c"} 0x60`, 30 * time.Minute, []string{"a", "b"}},

		{"a configuration that was taken", "CronlatchReloadFailed", `cronlatch_config_last_reload_successful{instance="a"} 0x10 1x50`, 30 * time.Minute, nil},
		{"a configuration that was rejected", "CronlatchReloadFailed", `
			cronlatch_config_last_reload_successful{instance="a"} 1x10 0x50
			cronlatch_config_last_reload_successful{instance="b"} 1x60`, 30 * time.Minute, []string{"a"}},

		{"a database that was away for a moment", "CronlatchDatabaseDown", `cronlatch_db_up{instance="a"} 1x10 0x1 1x50`, 12 * time.Minute, nil},
		{"a database that is away", "CronlatchDatabaseDown", `
			cronlatch_db_up{instance="a"} 1x10 0x50
			cronlatch_db_up{instance="b"} 1x60`, 20 * time.Minute, []string{"a"}},

		{"notifications that wait", "CronlatchNotificationsGivenUp", `
			cronlatch_notifications_given_up{instance="a"} 0x60
			cronlatch_notifications_pending{instance="a"} 5x60`, 20 * time.Minute, nil},
		{"a notification that was given up", "CronlatchNotificationsGivenUp", `cronlatch_notifications_given_up{instance="a"} 0x10 1x50`, 20 * time.Minute, []string{""}},
	}
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		t.Run(s.alert+"/"+s.name, func(t *testing.T) {
			t.Parallel()
			if got := firing(t, &s); !slices.Equal(got, s.want) {
				t.Errorf("for %q fire %s, expected %s", s.alert, quoted(got), quoted(s.want))
			}
		})
	}
}

func quoted(names []string) string { return "[" + strings.Join(names, "|") + "]" }

// firing are the jobs or instances for which the alert fires, sorted.
func firing(t *testing.T, s *sample) []string {
	t.Helper()
	p := parser.NewParser(parser.Options{})
	suite, err := promqltest.NewLazyLoader("load 1m\n  "+strings.TrimSpace(s.series), promqltest.LazyLoaderOpts{Parser: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := suite.Close(); err != nil {
			t.Error(err)
		}
	})
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()), AppendableV2: suite.Storage(), Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: p,
	})
	groups, errs := m.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var alert *rules.AlertingRule
	for _, g := range groups {
		for _, r := range g.AlertingRules() {
			r.SetRestored(true) // there was no earlier process
			if r.Name() == s.alert {
				alert = r
			}
		}
	}
	if alert == nil {
		t.Fatalf("there is no rule %s", s.alert)
	}
	for at := time.Unix(0, 0).UTC(); !at.After(time.Unix(0, 0).Add(s.at)); at = at.Add(time.Minute) {
		suite.WithSamplesTill(at, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				g.Eval(t.Context(), at)
				for _, r := range g.Rules() {
					if r.LastError() != nil {
						t.Fatalf("%s: %v", r.Name(), r.LastError())
					}
				}
			}
		})
	}
	var names []string
	for _, a := range alert.ActiveAlerts() {
		if a.State == rules.StateFiring {
			names = append(names, a.Labels.Get("job_name")+a.Labels.Get("instance"))
			complete(t, a)
		}
	}
	slices.Sort(names)
	return names
}

// complete checks that whoever gets the alert knows what to do.
func complete(t *testing.T, a *rules.Alert) {
	t.Helper()
	if s := a.Labels.Get("severity"); s != "critical" && s != "warning" {
		t.Errorf("the severity is %q", s)
	}
	for _, name := range []string{"summary", "description", "runbook"} {
		text := a.Annotations.Get(name)
		if text == "" || strings.Contains(text, "<error") || strings.Contains(text, "<no value>") {
			t.Errorf("%s is %q", name, text)
		}
	}
}

// Each alert has a sample with which it fires, and one with which it does not.
func TestEachAlertHasSamples(t *testing.T) {
	t.Parallel()
	p := parser.NewParser(parser.Options{})
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, p, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	seen := map[string][2]int{}
	for _, s := range samples() {
		n := seen[s.alert]
		if len(s.want) > 0 {
			n[1]++
		} else {
			n[0]++
		}
		seen[s.alert] = n
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if n := seen[r.Alert]; n[0] == 0 || n[1] == 0 {
				t.Errorf("%s has %d silent and %d firing samples", r.Alert, n[0], n[1])
			}
		}
	}
}
