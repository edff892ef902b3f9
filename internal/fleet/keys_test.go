package fleet

import (
	"encoding/json"
	"errors"
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

	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
)

// What decides when a job is due, and how long it may wait and take, holds whichever of three replicas plans it, settles it
// and runs it.
func TestTimesOnAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := New(t, url, Settings{})
		from := f.now().Truncate(time.Second).Add(toStart)
		to := from.Add(4 * time.Second)
		today := func(days int) string { return from.AddDate(0, 0, days).Format(time.DateOnly) }
		f.Configure(Settings{
			Capacity: 4,
			Top:      []string{fmt.Sprintf("calendars: {now: {dates: [%s, %s, %s]}}", today(-1), today(0), today(1))},
			Jobs: []Job{
				{Name: "queue", Schedule: everySecond, Args: []string{"-for", "2300ms"}, Overlap: "queue"},
				{Name: "jitter", Schedule: everyOther, Keys: []string{"jitter: 1500ms"}},
				{Name: "window", Schedule: everySecond, Keys: []string{
					fmt.Sprintf("from: %q", from.UTC().Format(time.RFC3339)), fmt.Sprintf("until: %q", to.UTC().Format(time.RFC3339)),
				}},
				{Name: "closed", Schedule: everySecond, Keys: []string{"calendars: {exclude: [now]}"}},
				{Name: "open", Schedule: everySecond, Keys: []string{"calendars: {include: [now]}"}},
				{Name: "taken", Schedule: everySecond, Resource: "taken", Keys: []string{"start_deadline: 2s"}},
				{Name: "slow", Args: []string{"-for", "30s", "-grandchild"}, KillAfter: 300 * time.Millisecond, Keys: []string{"timeout: 6s"}},
			},
		})
		client := f.Take("taken", clientTTL)
		f.startReady("a", "b", "c")
		planned := f.planning("window")
		require.True(t, planned.Before(from), "all replicas were there before the instant")
		slow := f.Trigger("slow")
		w := f.watch(to.Add(3*time.Second).Sub(f.now()), "open")
		f.planned(to.Add(-time.Second), "window")
		slow = f.WaitFinished(slow.ID)
		assert.Equal(t, jobs.OutcomeTimedOut, slow.Outcome)
		assert.Equal(t, jobs.ReasonTimeout, slow.Reason)
		assert.GreaterOrEqual(t, slow.FinishedAt.Sub(*slow.StartedAt), 6300*time.Millisecond, "the grandchild ignores SIGTERM, once it is there: timeout and kill_after")
		f.LeaveAll()
		h := History{f.Runs(), f.Events()}
		require.NoError(t, errors.Join(check.Exclusive(h.Events), check.Starts(h.Runs, h.Events), check.Tokens(h.Runs)))
		assertQueued(t, h.of("queue"))
		assertJitter(t, h.of("jitter"))
		assertWindow(t, h.of("window"), from, to)
		assert.Empty(t, h.of("closed"))
		mostly(t, h.of("open"))
		require.NoError(t, check.Calendar(h.of("open"), map[string]string{"open": everySecond}, w))
		assertTaken(t, h.of("taken"), client.record.Owner)
	})
}

// assertQueued: they ran one after another, the oldest first, and at most one of them waited.
func assertQueued(t *testing.T, runs []jobs.Run) {
	t.Helper()
	var ran, skipped int
	var last jobs.Run
	for _, r := range runs {
		switch {
		case r.Outcome == jobs.OutcomeSkipped:
			assert.Equal(t, jobs.ReasonOverlap, r.Reason)
			skipped++
		case r.StartedAt != nil:
			if last.FinishedAt != nil {
				assert.False(t, r.StartedAt.Before(*last.FinishedAt), "run %d began before run %d had ended", r.ID, last.ID)
				assert.True(t, r.ScheduledAt.After(last.ScheduledAt))
			}
			last = r
			ran++
		}
	}
	assert.GreaterOrEqual(t, ran, 3, "it takes more than two seconds")
	assert.GreaterOrEqual(t, skipped, 3)
}

func assertJitter(t *testing.T, runs []jobs.Run) {
	t.Helper()
	job := jobs.Job{Name: "jitter", Jitter: 1500 * time.Millisecond}
	moved := 0
	for _, r := range runs {
		if r.Outcome == jobs.OutcomeMissed {
			continue // nobody was there, and it was never due
		}
		assert.True(t, job.DueAt(r.ScheduledAt).Equal(r.DueAt), "run %d: every replica computes the same", r.ID)
		assert.True(t, r.StartedAt == nil || !r.StartedAt.Before(r.DueAt), "run %d began before it was due", r.ID)
		if !r.DueAt.Equal(r.ScheduledAt) {
			moved++
		}
	}
	assert.GreaterOrEqual(t, moved, 2)
}

func assertWindow(t *testing.T, runs []jobs.Run, from, to time.Time) {
	t.Helper()
	var want, got []time.Time
	for at := from; at.Before(to); at = at.Add(time.Second) {
		want = append(want, at.UTC())
	}
	for _, r := range runs {
		got = append(got, r.ScheduledAt.UTC())
	}
	slices.SortFunc(got, time.Time.Compare)
	assert.Equal(t, want, got)
}

// assertTaken: a client had the lock all the time.
func assertTaken(t *testing.T, runs []jobs.Run, owner string) {
	t.Helper()
	held := 0
	for _, r := range runs {
		assert.Nil(t, r.StartedAt, "run %d", r.ID)
		if r.Reason != jobs.ReasonLockHeld {
			continue
		}
		held++
		assert.Equal(t, jobs.OutcomeMissed, r.Outcome)
		var facts struct{ Holder map[string]any }
		require.NoError(t, json.Unmarshal(r.Detail, &facts))
		assert.Contains(t, facts.Holder, "acquired_at")
		assert.NotContains(t, string(r.Detail), owner, "whoever knows the owner may release the lock")
	}
	assert.GreaterOrEqual(t, held, 2)
}

// receiver counts the requests of http jobs by their Idempotency-Key, and refuses those of the job "refused".
type receiver struct {
	mu   sync.Mutex
	seen map[string]int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[q.Header.Get(jobs.HeaderIdempotencyKey)]++
	if q.URL.Path == "/refused" {
		w.WriteHeader(http.StatusTeapot)
	}
}

// Requests and transactions: the other side counts them.
func TestOtherWorkOnAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		r := &receiver{seen: map[string]int{}}
		server := httptest.NewServer(r)
		defer server.Close()
		request := func(path string) string {
			return fmt.Sprintf("http: {url: %q, method: POST, allow: [\"127.0.0.1\"]}", server.URL+path)
		}
		f := New(t, url, Settings{Capacity: capacity, Jobs: []Job{
			{Name: "asked", Schedule: everySecond, Work: request("/")},
			{Name: "refused", Schedule: everySecond, Work: request("/refused")},
			{Name: "written", Schedule: everySecond, Work: `sql: {statement: "INSERT INTO written VALUES ({{ .ScheduledAt }})"}`},
			{Name: "broken", Schedule: everySecond, Work: `sql: {statement: "INSERT INTO written VALUES ('broken'); SELECT no_such_column"}`},
		}})
		f.exec(`CREATE TABLE written (at text PRIMARY KEY)`)
		for _, name := range []string{"a", "b", "c"} {
			f.StartReady(name)
		}
		w := f.watch(8 * time.Second)
		until(t, "each job has ended several times", patience, func() bool {
			ended := 0
			for name := range schedules(f.settings.Jobs) {
				ended += min(3, f.count(`job = ? AND outcome IN ('succeeded', 'failed')`, name))
			}
			return ended == 4*3
		})
		f.LeaveAll()
		h := History{Runs: f.Runs()}
		require.NoError(t, errors.Join(check.Calendar(h.Runs, schedules(f.settings.Jobs), w), check.Tokens(h.Runs)))
		assertOutcomes(t, h.Runs)
		r.assertOnce(t, h)
		var rows []string
		f.must(f.DB.Main.NewRaw(`SELECT at FROM written ORDER BY at`).Scan(t.Context(), &rows))
		var want []string
		for _, run := range h.of("written") {
			if run.Outcome == jobs.OutcomeSucceeded {
				want = append(want, run.ScheduledAt.UTC().Format(time.RFC3339))
			}
		}
		slices.Sort(want)
		assert.Equal(t, want, rows, "each success was written, and nothing else")
	})
}

// assertOutcomes: what ran ended as the other side would have it, and most has run.
func assertOutcomes(t *testing.T, runs []jobs.Run) {
	t.Helper()
	reasons := map[string]jobs.Reason{"asked": "", "refused": jobs.ReasonHTTPStatus, "written": "", "broken": jobs.ReasonSQL}
	ended := map[string]int{}
	for _, r := range runs {
		switch r.Outcome {
		case jobs.OutcomeSucceeded, jobs.OutcomeFailed:
			ended[r.Job]++
			assert.Equal(t, reasons[r.Job], r.Reason, "run %d of %s", r.ID, r.Job)
			assert.Equal(t, reasons[r.Job] == "", r.Outcome == jobs.OutcomeSucceeded, "run %d of %s", r.ID, r.Job)
		default:
		}
	}
	for job := range reasons {
		assert.GreaterOrEqual(t, ended[job], 3, job)
	}
}

// assertOnce: each run that ended made one request, and no request was made for nothing.
func (r *receiver) assertOnce(t *testing.T, h History) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range slices.Concat(h.of("asked"), h.of("refused")) {
		key := strconv.FormatInt(run.ID, 10)
		n := r.seen[key]
		delete(r.seen, key)
		if run.Outcome == jobs.OutcomeSucceeded || run.Outcome == jobs.OutcomeFailed {
			assert.Equal(t, 1, n, "run %d of %s", run.ID, run.Job)
		} else {
			assert.LessOrEqual(t, n, 1, "run %d of %s", run.ID, run.Job)
		}
	}
	assert.Empty(t, r.seen)
}
