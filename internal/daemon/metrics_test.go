package daemon

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// What Prometheus asks for, by version, and what a person's curl does.
const (
	prometheus2 = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	prometheus3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5," +
		"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	histograms = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7," + prometheus2
	curl       = "*/*"
)

// scraped is an answer of /metrics.
type scraped struct {
	status   int
	header   http.Header
	families map[string]*dto.MetricFamily
	text     string
}

// scrape asks as Prometheus does: with a token, and ready for gzip.
func (s *served) scrape(t *testing.T, token, accept string) scraped {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "gzip")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(req)
	require.NoError(t, err)
	defer func() { assert.NoError(t, resp.Body.Close()) }()
	var body io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(resp.Body)
		require.NoError(t, err)
	}
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	families := map[string]*dto.MetricFamily{}
	if resp.StatusCode == http.StatusOK {
		decoder := expfmt.NewDecoder(strings.NewReader(string(text)), expfmt.ResponseFormat(resp.Header))
		for {
			var f dto.MetricFamily
			if err := decoder.Decode(&f); err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			families[f.GetName()] = &f
		}
	}
	return scraped{resp.StatusCode, resp.Header, families, string(text)}
}

// promised are the names that dashboards rely on, with the labels of each.
//
//nolint:gochecknoglobals // a closed list
var promised = map[string][]string{
	"job_last_success_timestamp_seconds": {"job_name"}, "job_last_run_success": {"job_name"}, "job_next_run_timestamp_seconds": {"job_name"},
	"job_max_age_seconds": {"job_name"}, "job_paused": {"job_name"},
	"runs_total": {"job_name", "outcome", "trigger"}, "run_duration_seconds": {"job_name"}, "run_start_delay_seconds": {"job_name"},
	"runs_active": {"job_name"}, "runs_waiting": {"job_name"},
	"lock_acquisitions_total": {"result"}, "locks_held": nil, "lock_hold_seconds": nil, "lock_renewal_slack_seconds": nil,
	"lock_renew_failures_total": nil, "lock_lost_total": nil, "lock_takeovers_total": nil,
	"replicas": nil, "db_clock_offset_seconds": nil, "db_up": nil, "db_query_duration_seconds": {"op"},
	"config_last_reload_successful": nil, "build_info": {"go_version", "version"},
}

func labelsOf(f *dto.MetricFamily) []string {
	var names []string
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			names = append(names, l.GetName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A daemon that has done something is scraped as Prometheus does it: everything promised is there, and what the alert rules ask for.
func TestPrometheusScrapesADaemon(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		viewer, err := auth.New("prometheus")
		require.NoError(t, err)
		d := serve(t, url, `
auth:
  tokens:
    - {id: prometheus, role: viewer, sha256: "`+auth.Hash(viewer)+`"}
jobs:
  tick: {schedule: "* * * * * *", seconds: true, command: ["true"], max_age: 1h}
`, nil)
		defer d.leave(t)
		waitForRuns(t, url, 1)
		assert.Equal(t, http.StatusUnauthorized, d.scrape(t, "", prometheus3).status, "what names jobs is for those who may read")
		var families map[string]*dto.MetricFamily
		assert.Eventually(t, func() bool { // what the database knows is up to 5 s old, and a run is counted after its COMMIT
			families = d.scrape(t, viewer, prometheus3).families
			return !slices.ContainsFunc(slices.Collect(maps.Keys(promised)), func(name string) bool { return families["cronlatch_"+name] == nil })
		}, patience, 100*time.Millisecond)
		for name, labels := range promised {
			f := families["cronlatch_"+name]
			if assert.NotNil(t, f, name) {
				assert.Equal(t, labels, labelsOf(f), name)
			}
		}
		checkRules(t, families)
		checkForms(t, d, viewer)
	})
}

// checkRules: a rule about a metric, a label or a bucket that no daemon exports never fires.
func checkRules(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	rules, err := os.ReadFile("../../deploy/alerts.yaml")
	require.NoError(t, err)
	histogram := regexp.MustCompile(`_(bucket|count|sum)$`)
	used := regexp.MustCompile(`cronlatch_[a-z_]+`).FindAllString(string(rules), -1)
	require.NotEmpty(t, used)
	for _, name := range used {
		f := families[name]
		if base := histogram.ReplaceAllString(name, ""); f == nil && families[base].GetType() == dto.MetricType_HISTOGRAM {
			f = families[base]
		}
		assert.NotNil(t, f, name)
	}
	for _, list := range regexp.MustCompile(`(?:by|on) \(([a-z_, ]+)\)`).FindAllStringSubmatch(string(rules), -1) {
		assert.Contains(t, []string{"job_name", "instance"}, list[1], "instance is the scraper's")
	}
	var bounds []float64
	for _, b := range families["cronlatch_run_start_delay_seconds"].GetMetric()[0].GetHistogram().GetBucket() {
		bounds = append(bounds, b.GetUpperBound())
	}
	assert.Contains(t, bounds, 60.0, "CronlatchRunsStartLate counts what is above it")
}

// checkForms: whoever asks gets a form that was asked for, with names that no escaping changes.
func checkForms(t *testing.T, d *served, token string) {
	t.Helper()
	const text = "text/plain; version=0.0.4; charset=utf-8; escaping="
	for accept, want := range map[string]string{
		prometheus2: text + "underscores", prometheus3: text + "allow-utf-8", curl: text + "underscores", "": text + "underscores",
		histograms: "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores",
	} {
		got := d.scrape(t, token, accept)
		assert.Equal(t, http.StatusOK, got.status, accept)
		assert.Equal(t, want, got.header.Get("Content-Type"), accept)
		assert.Equal(t, "gzip", got.header.Get("Content-Encoding"), "500 jobs are a megabyte without it")
		assert.Contains(t, got.families, "cronlatch_db_up", accept)
		if strings.HasPrefix(want, text) {
			problems, err := promlint.New(strings.NewReader(got.text)).Lint()
			require.NoError(t, err)
			assert.Empty(t, problems, accept)
		}
	}
}
