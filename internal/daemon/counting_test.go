package daemon

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// A run that is called off before it begins is ended by the API, the one that runs by the loop: each is counted once.
func TestACancelledRunIsCountedOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	d := boot(t, url, `
auth: none
jobs:
  long: {command: ["/bin/sleep", "100"], overlap: queue, kill_after: 1s}
`)
	defer d.leave(t)
	l := ledger(t, url)
	reaches := func(f jobs.RunFilter, n int) (runs []jobs.Run) {
		t.Helper()
		require.Eventually(t, func() bool {
			var err error
			runs, err = l.List(t.Context(), f)
			return err == nil && len(runs) == n
		}, patience, 50*time.Millisecond)
		return runs
	}
	d.asks(t, http.MethodPost, "/jobs/long/runs", "{}")
	running := reaches(jobs.RunFilter{State: jobs.StateRunning}, 1)[0]
	d.asks(t, http.MethodPost, "/jobs/long/runs", "{}")
	pending := reaches(jobs.RunFilter{State: jobs.StatePending}, 1)[0]
	for _, run := range []jobs.Run{pending, running} {
		d.asks(t, http.MethodPost, "/runs/"+strconv.FormatInt(run.ID, 10)+"/cancel", "{}")
	}
	reaches(jobs.RunFilter{Outcome: jobs.OutcomeCancelled}, 2)
	const counted = `cronlatch_runs_total{job_name="long",outcome="cancelled",trigger="manual"} `
	var now string
	assert.Eventually(t, func() bool { // the loop counts when its COMMIT was answered
		_, now, _ = strings.Cut(d.asks(t, http.MethodGet, "/metrics", ""), counted)
		now, _, _ = strings.Cut(now, "\n")
		return now == "2"
	}, patience, 50*time.Millisecond)
	assert.Equal(t, "2", now)
}

// asks is an answer's body.
func (b *booted) asks(t *testing.T, method, path, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.addr+path, strings.NewReader(body))
	require.NoError(t, err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer func() { assert.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Less(t, resp.StatusCode, http.StatusMultipleChoices, string(text))
	return string(text)
}
