package scheduler

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/migrations"
)

// The policies are tested with everything real but the processes and the clock: the loop, the keeper and the SQL on a SQLite
// file in memory, all in a bubble of testing/synctest. SQLite takes 'now' from Go's clock, so the database's time is the
// bubble's, too: hours of a schedule pass while one would wait for a single run, and each run starts exactly when it must.

// policyCase is a story: which jobs there are, what happens, and what the ledger must say in the end. It begins with one
// replica, "a", shortly before anything happens. All times count from midnight.
type policyCase struct {
	jobs     []func(testing.TB) *jobs.Job
	work     func(a *jobs.Attempt) work   // what an attempt does; nil: each succeeds after 5 s
	steps    []step                       // in the order of their instants
	capacity int                          // of each replica; 0 is 8
	labels   map[string]map[string]string // of the replicas, by their names; then the lines say on which one a run started
	until    time.Duration                // when the ledger is read
	// want is the ledger, a line for each row, in the order of the occurrences: its job where there are several, occurrence,
	// attempt, when it started (in whole seconds) or -, its outcome (or state) and the reason.
	want string
}

// work is what one attempt does.
type work struct {
	takes   time.Duration
	code    int
	end     *jobs.Result // how it ends, where code does not say it
	refused error        // it cannot be started
}

type step struct {
	at time.Duration
	do func(s *stage)
}

// exits ends the n-th attempt after 5 s with the n-th code.
func exits(codes ...int) func(*jobs.Attempt) work {
	return func(a *jobs.Attempt) work { return work{takes: 5 * time.Second, code: codes[a.Run.Attempt-1]} }
}

func takes(d time.Duration) func(*jobs.Attempt) work {
	return func(*jobs.Attempt) work { return work{takes: d} }
}

// playPolicies plays each story in a bubble of its own.
func playPolicies(t *testing.T, cases map[string]policyCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := raise(t, &c)
				time.Sleep(s.idle())
				s.join("a")
				for _, step := range c.steps {
					time.Sleep(time.Until(s.began.Add(step.at)))
					step.do(s)
				}
				time.Sleep(time.Until(s.began.Add(c.until)))
				synctest.Wait()
				assert.Equal(t, lines(c.want), s.told())
				s.assertCounted()
				s.clear()
			})
		})
	}
}

// stage is a database and the replicas on it.
type stage struct {
	t      *testing.T
	c      *policyCase
	url    string
	db     *database.DB // the test's own
	known  []*jobs.Job
	began  time.Time
	actors []*actor // that have not left
	joined int      // how many ever

	counted endings // of all replicas, and of what people did
	deleted bool    // the ledger has lost rows that were counted
}

func raise(t *testing.T, c *policyCase) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "cronlatch-policies-") //nolint:usetesting // thousands of commits should not wait for a disk
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	s := &stage{t: t, c: c, url: "sqlite:" + filepath.Join(dir, "cronlatch.db"), began: time.Now()}
	s.db = dbtest.Open(t, s.url)
	require.NoError(t, migrations.Up(t.Context(), s.db.Main))
	for _, job := range c.jobs {
		s.known = append(s.known, job(t))
	}
	require.NoError(t, jobs.Link(s.known))
	return s
}

// idle is how long nothing happens: until a minute before the first instant of a job, or just before the first step.
func (s *stage) idle() time.Duration {
	first := s.c.until
	for _, j := range s.known {
		if j.Schedule != nil {
			first = min(first, j.Schedule.Next(s.began).Sub(s.began)-time.Minute)
		}
	}
	if len(s.c.steps) > 0 {
		first = min(first, s.c.steps[0].at-time.Second)
	}
	return first
}

// told is the ledger as lines.
func (s *stage) told() []string {
	s.t.Helper()
	ledger, err := jobs.OpenLedger(s.db.Main)
	require.NoError(s.t, err)
	runs, err := ledger.List(s.t.Context(), jobs.RunFilter{Limit: 10_000})
	require.NoError(s.t, err)
	slices.SortFunc(runs, func(a, b jobs.Run) int {
		return cmp.Or(a.ScheduledAt.Compare(b.ScheduledAt), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Attempt, b.Attempt))
	})
	told := make([]string, len(runs))
	for i := range runs {
		told[i] = s.line(&runs[i])
	}
	return told
}

func (s *stage) line(r *jobs.Run) string {
	started := "-"
	if r.StartedAt != nil {
		if started = r.StartedAt.Format(time.TimeOnly); s.c.labels != nil {
			started += " " + r.Replica
		}
	}
	at := strings.TrimSuffix(r.ScheduledAt.Format(time.TimeOnly), ":00")
	words := []string{at, strconv.Itoa(r.Attempt), started, string(cmp.Or(r.Outcome, jobs.Outcome(r.State))), string(r.Reason)}
	if len(s.known) > 1 {
		words = slices.Insert(words, 0, r.Job)
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// lines are the lines of a text, each with single spaces.
func lines(text string) []string {
	all := []string{}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// clear lets everybody leave.
func (s *stage) clear() {
	s.t.Helper()
	for len(s.actors) > 0 {
		s.leaves(s.actors[0].name)
	}
}
