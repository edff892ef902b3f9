package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// The receiver takes connections and never answers: the runs begin, end and follow each other as if it was not there.
func TestAPingThatHangsDelaysNoRun(t *testing.T) {
	t.Parallel()
	r := &deaf{over: make(chan struct{})}
	receiver := httptest.NewServer(r)
	defer receiver.Close()
	defer close(r.over)
	url := dbtest.SQLiteURL(t)
	b := serve(t, url, fmt.Sprintf(`
jobs:
  often: {seconds: true, schedule: "* * * * * *", command: ["true"], ping: %q, ping_allow_private: true}
`, receiver.URL+"/uuid"), nil)
	l := ledger(t, url)
	var runs []jobs.Run
	require.Eventually(t, func() bool { // if a run waited for what is told of the one before, there was at most one more than was given up
		var err error
		runs, err = l.List(t.Context(), jobs.RunFilter{Outcome: jobs.OutcomeSucceeded})
		told, givenUp := r.heard()
		return err == nil && told > 0 && len(runs) >= givenUp+4
	}, patience, 20*time.Millisecond)
	waited, took := make([]time.Duration, len(runs)), make([]time.Duration, len(runs))
	for i := range runs {
		waited[i], took[i] = runs[i].StartedAt.Sub(runs[i].DueAt), runs[i].FinishedAt.Sub(*runs[i].StartedAt)
	}
	assert.Less(t, slices.Min(waited), pingTry)
	assert.Less(t, slices.Min(took), pingTry)
	assert.Empty(t, b.log.FilterMessageSnippet("not public").All())
	b.leave(t) // although there is no answer; that it is not waited for is measured in package notify, where no machine is slow
}

// pingTry is how long a ping may take.
const pingTry = 10 * time.Second

// deaf never answers.
type deaf struct {
	over chan struct{}

	mu            sync.Mutex
	told, givenUp int // ends of runs
}

func (d *deaf) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/uuid" {
		d.mu.Lock()
		d.told++
		d.mu.Unlock()
	}
	select {
	case <-r.Context().Done():
	case <-d.over:
	}
	if r.URL.Path == "/uuid" {
		d.mu.Lock()
		d.givenUp++
		d.mu.Unlock()
	}
}

func (d *deaf) heard() (told, givenUp int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told, d.givenUp
}
