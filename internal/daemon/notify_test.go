package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// The receiver takes connections and never answers: the runs begin, end and follow each other as if it was not there.
func TestAPingThatHangsDelaysNoRun(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	over := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	defer receiver.Close()
	defer close(over)
	url := dbtest.SQLiteURL(t)
	b := serve(t, url, fmt.Sprintf(`
jobs:
  often: {seconds: true, schedule: "* * * * * *", command: ["true"], ping: %q, ping_allow_private: true}
`, receiver.URL+"/uuid"), nil)
	runs := waitForRuns(t, url, 5)
	for i := range runs {
		if r := &runs[i]; r.Outcome == jobs.OutcomeSucceeded {
			assert.Less(t, r.StartedAt.Sub(r.DueAt), 3*time.Second)
			assert.Less(t, r.FinishedAt.Sub(*r.StartedAt), 3*time.Second, "a try takes 10 s")
		}
	}
	assert.Positive(t, asked.Load())
	assert.Empty(t, b.log.FilterMessageSnippet("not public").All())
	leaving := time.Now()
	b.leave(t)
	assert.Less(t, time.Since(leaving), 5*time.Second, "nor does the daemon wait for it")
}
