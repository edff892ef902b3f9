package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// receiver is a server that notes what it is sent.
type receiver struct {
	mu   sync.Mutex
	keys []string
	last int64 // the highest fencing token so far
	late int   // requests with a lower one
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	token, _ := strconv.ParseInt(q.Header.Get(jobs.HeaderFencingToken), 10, 64)
	if token < r.last {
		r.late++
	}
	r.last = max(r.last, token)
	r.keys = append(r.keys, q.Header.Get(jobs.HeaderIdempotencyKey))
	_, _ = fmt.Fprintf(w, "key %s", q.Header.Get(jobs.HeaderIdempotencyKey))
}

// TestTwoDaemonsSendEachRequestOnce: what holds for commands holds for requests.
func TestTwoDaemonsSendEachRequestOnce(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		r := &receiver{}
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)
		yaml := fmt.Sprintf(`
jobs:
  hook: {schedule: "* * * * * *", seconds: true, http: {url: %q, method: POST, body: "{{ .Resource }}", allow: ["127.0.0.1"]}}
`, server.URL)
		one, two := boot(t, url, yaml), boot(t, url, yaml)
		runs := waitForRuns(t, url, 3)
		one.leave(t)
		two.leave(t)
		r.mu.Lock()
		defer r.mu.Unlock()
		assert.Zero(t, r.late)
		for _, run := range runs {
			id := strconv.FormatInt(run.ID, 10)
			i := slices.Index(r.keys, id)
			require.GreaterOrEqual(t, i, 0, "the receiver saw run %s", id)
			assert.NotContains(t, r.keys[i+1:], id, "once")
			out, err := ledger(t, url).Output(t.Context(), run.ID)
			require.NoError(t, err)
			assert.Contains(t, string(out.Head), "HTTP/1.1 200 OK\n")
			assert.Contains(t, string(out.Head), "\n\nkey "+id)
		}
	})
}

// TestATransactionOnTheDatabaseOfTheLocks is stored once for each run that succeeded.
func TestATransactionOnTheDatabaseOfTheLocks(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		db := dbtest.Open(t, url)
		_, err := db.Main.NewRaw("CREATE TABLE notes (at text)").Exec(t.Context())
		require.NoError(t, err)
		const yaml = `
jobs:
  note: {schedule: "* * * * * *", seconds: true, sql: {statement: "INSERT INTO notes VALUES ({{ .ScheduledAt }})"}}
`
		one, two := boot(t, url, yaml), boot(t, url, yaml)
		waitForRuns(t, url, 3)
		one.leave(t)
		two.leave(t)
		runs, err := ledger(t, url).List(t.Context(), jobs.RunFilter{Outcome: jobs.OutcomeSucceeded})
		require.NoError(t, err)
		want := make([]string, len(runs))
		for i, run := range runs {
			want[i] = run.ScheduledAt.UTC().Format(time.RFC3339)
		}
		var have []string
		require.NoError(t, db.Main.NewRaw("SELECT at FROM notes").Scan(t.Context(), &have))
		assert.ElementsMatch(t, want, have)
	})
}

// TestARequestThatFails is a failed run with the answer as its output, and one that cannot be sent says why.
func TestARequestThatFails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for name, test := range map[string]struct {
		allow, want string
		reason      jobs.Reason
	}{
		"not found": {`, allow: ["127.0.0.1"]`, "the status 404 is not an expected one", jobs.ReasonHTTPStatus},
		"refused":   {"", "is not public", jobs.ReasonStart},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.SQLiteURL(t)
			d := boot(t, url, fmt.Sprintf(`
jobs:
  hook: {schedule: "* * * * * *", seconds: true, http: {url: %q%s}}
`, server.URL, test.allow))
			defer d.leave(t)
			l := ledger(t, url)
			var out jobs.Output
			var reason jobs.Reason
			require.Eventually(t, func() bool {
				runs, err := l.List(t.Context(), jobs.RunFilter{Outcome: jobs.OutcomeFailed})
				if err != nil || len(runs) == 0 {
					return false
				}
				reason = runs[0].Reason
				out, err = l.Output(t.Context(), runs[0].ID)
				return err == nil
			}, patience, 50*time.Millisecond)
			assert.Contains(t, string(out.Head), test.want)
			assert.Equal(t, test.reason, reason)
		})
	}
}
