package metrics_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//nolint:gochecknoglobals // a flag
var update = flag.Bool("update", false, "write testdata/metrics.txt and docs/metrics.md")

// afterAStory is what /metrics says when everything has happened once.
func afterAStory(t *testing.T) (families map[string]*dto.MetricFamily, text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		r := story(t)
		r.m.Reloaded(true)
		r.until(10*time.Minute + 5*time.Second)
		synctest.Wait()
		families, text = scrape(t, r.m)
		r.leave()
	})
	return families, text
}

func TestPromlint(t *testing.T) {
	t.Parallel()
	_, text := afterAStory(t)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// metric is one line of the list of metrics.
type metric struct{ name, kind, labels, help string }

// metricsOf are the product's own metrics, by name.
func metricsOf(t *testing.T, families map[string]*dto.MetricFamily) []metric {
	t.Helper()
	var all []metric
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "cronlatch_") {
			continue
		}
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		all = append(all, metric{f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(slices.Sorted(maps.Keys(labels)), ", "), f.GetHelp()})
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return all
}

const (
	golden = "testdata/metrics.txt"
	page   = "../../docs/metrics.md"
	begin  = "<!-- the table is written by go test ./internal/metrics -update -->\n"
	end    = "<!-- end of the table -->\n"
)

// The names, types and labels are a promise to dashboards and alert rules: a change of the list is a change on purpose.
func TestMetricsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	families, _ := afterAStory(t)
	var list, table strings.Builder
	table.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range metricsOf(t, families) {
		fmt.Fprintf(&list, "%s %s {%s} %s\n", m.name, m.kind, m.labels, m.help)
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.name, m.kind, cmp.Or(m.labels, "-"), m.help)
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has no mark where the table begins", page)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no mark where the table ends", page)
	want := before + begin + table.String() + end + after
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(list.String()), 0o600))
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
	}
	known, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(known), list.String())
	assert.Equal(t, want, string(text), "docs/metrics.md is not up to date: go test ./internal/metrics -update")
}

// An alert about a metric that nobody exports never fires.
func TestAlertsUseExportedMetrics(t *testing.T) {
	t.Parallel()
	known, err := os.ReadFile(golden)
	require.NoError(t, err)
	kinds := map[string]string{}
	for line := range strings.Lines(string(known)) {
		words := strings.Fields(line)
		kinds[words[0]] = words[1]
	}
	rules, err := os.ReadFile("../../deploy/alerts.yaml")
	require.NoError(t, err)
	used := regexp.MustCompile(`cronlatch_[a-z_]+`).FindAllString(string(rules), -1)
	require.Greater(t, len(used), 10)
	for _, name := range used {
		for _, part := range []string{"_bucket", "_count", "_sum"} {
			if base, ok := strings.CutSuffix(name, part); ok && kinds[base] == "histogram" {
				name = base
			}
		}
		assert.Contains(t, kinds, name)
	}
}
