package configs

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func goodFile(t *testing.T, name string) *Config {
	t.Helper()
	data, err := os.ReadFile("testdata/good/" + name)
	require.NoError(t, err)
	c, err := Parse(name, data, fixtureOptions())
	require.NoError(t, err)
	return c
}

func TestRequestsAreRead(t *testing.T) {
	t.Parallel()
	c := goodFile(t, "http.yaml")
	plain, err := c.Job("plain")
	require.NoError(t, err)
	assert.Equal(t, jobs.HTTP{
		Method: "GET", URL: "https://example.com/hook", MaxBody: 64 << 10, Expect: jobs.Expect{Status: []jobs.StatusRange{{From: 200, To: 299}}},
	}, *plain.HTTP)

	report, err := c.Job("report:monthly-YYYY-MM")
	require.NoError(t, err)
	h := report.HTTP
	assert.Equal(t, "https://example.com/reports/{{ .Period }}?at={{ .ScheduledAt }}", h.URL)
	assert.Equal(t, []jobs.Header{
		{Name: "Authorization", Value: "Bearer " + canary}, {Name: "Content-Type", Value: "application/json"}, {Name: "X-Resource", Value: "{{ .Resource }}"},
	}, h.Headers)
	assert.Equal(t, "POST", h.Method)
	assert.Equal(t, []jobs.StatusRange{{From: 200, To: 299}, {From: 304, To: 304}}, h.Expect.Status)
	assert.Equal(t, `"ok": *true$`, h.Expect.Body.String(), "the dollar is the expression's")
	assert.Equal(t, 1<<20, h.MaxBody)
	assert.Equal(t, []string{"internal.example", "10.0.0.0/8", "fd00::/8", "192.168.0.1"}, h.Allow)
	assert.NotContains(t, fmt.Sprintf("%+v %#v", *report, c.Jobs), canary)
}

func TestTransactionsAreRead(t *testing.T) {
	t.Parallel()
	c := goodFile(t, "sql.yaml")
	for name, want := range map[string]jobs.SQL{
		"own": {Database: "own", Statements: []string{"DELETE FROM sessions WHERE expires_at < now()"}},
		"report-YYYY-MM": {Database: "warehouse", URL: "postgres://jobs:" + canary + "@db.example/warehouse", Statements: []string{
			"-- the dollars are PostgreSQL's; ${NOTHING} is replaced\nDO $$ BEGIN PERFORM 1; END $$",
			`DELETE FROM reports WHERE month = {{ .Period }} AND name = '{{ "{{" }}'`,
			"INSERT INTO reports SELECT {{ .Period }}, {{ .Resource }}, {{ .ScheduledAt }}",
		}},
		"from-file": {Database: "archive", URL: "sqlite:archive.db", Statements: []string{
			"CREATE TABLE IF NOT EXISTS t (a text)", "INSERT INTO t VALUES ({{ .Resource }})",
		}},
	} {
		job, err := c.Job(name)
		require.NoError(t, err)
		// Printing it, as a failed assertion would, shows nothing.
		assert.Equal(t, []any{want.Database, want.URL, want.Statements}, []any{job.SQL.Database, job.SQL.URL, job.SQL.Statements})
	}
}

// TestEnvFromDefaultsIsForProcesses: a request has none, and its definition does not change with it.
func TestEnvFromDefaultsIsForProcesses(t *testing.T) {
	t.Parallel()
	const file = "defaults: {env: {A: %s}, exit_codes: {success: [0, 1]}}\njobs:\n  a: {http: {url: \"https://example.com\"}}\n"
	b, c := mustParse(t, fmt.Sprintf(file, "b")), mustParse(t, fmt.Sprintf(file, "c"))
	assert.Nil(t, b.Jobs[0].Env)
	assert.Zero(t, b.Jobs[0].ExitCodes)
	assert.Equal(t, b.Hash, c.Hash)
}

func TestTheHashCoversRequestsAndTransactions(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, text := range []string{
		`http: {url: "https://example.com/"}`,
		`http: {url: "https://example.com/x"}`,
		`http: {url: "https://example.com/", method: POST}`,
		`http: {url: "https://example.com/", method: POST, body: x}`,
		`http: {url: "https://example.com/", headers: {A: b}}`,
		`http: {url: "https://example.com/", headers: {A: c}}`,
		`http: {url: "https://example.com/", expect: {status: 200}}`,
		`http: {url: "https://example.com/", expect: {body: x}}`,
		`http: {url: "https://example.com/", max_body: 1KiB}`,
		`http: {url: "https://example.com/", allow: [a.example]}`,
		`sql: {statement: "SELECT 1"}`,
		`sql: {statement: "SELECT 2"}`,
		`sql: {statement: "SELECT 1", database: w}`,
	} {
		c := mustParse(t, "databases: {w: {url: \"sqlite:w.db\"}}\njobs:\n  a: {"+text+"}\n")
		assert.Empty(t, seen[c.Hash], text)
		seen[c.Hash] = text
	}
	moved := mustParse(t, "databases: {w: {url: \"sqlite:v.db\"}}\njobs:\n  a: {sql: {statement: \"SELECT 1\", database: w}}\n")
	assert.Empty(t, seen[moved.Hash], "a database that moved")
}
