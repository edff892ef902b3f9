package fleet

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
)

const everyOther = "*/2 * * * * *"

// statementSettings give every statement of the scheduler a reason to be executed within a few seconds. crashed is how
// long the job takes that is running when the wreck is made.
func statementSettings(crashed string) Settings {
	return Settings{TTL: faultTTL, Top: []string{"limits: {db: 1}"}, Jobs: []Job{
		{Name: "tick", Schedule: everySecond},
		{Name: "slow", Schedule: everySecond, Args: []string{"-for", "1500ms"}},
		{
			Name: "again", Schedule: everyOther, Command: script(`test "$CRONLATCH_ATTEMPT" -ge 2`),
			Keys: []string{"retry: {attempts: 2, delay: 0s}"},
		},
		{Name: "limited", Schedule: everyOther, Keys: []string{"tags: [db]"}},
		{Name: "once", Schedule: everyOther, Resource: "report", Keys: []string{"once_per: resource"}},
		{Name: "replaced", Schedule: everyOther, Args: []string{"-for", "2500ms"}, Overlap: "replace"},
		{Name: "crashed", Args: []string{"-for", crashed}, OnLost: "retry"},
		// It lives for two beats of half a second at least, so that its output is handed in.
		{Name: "prints", Schedule: everyOther, Command: script(`echo one; sleep 1.2; echo two`)},
		// It waits until it is missed, and what for is taken down.
		{Name: "nowhere", Schedule: everyOther, Overlap: "allow", Keys: []string{"only_on: {zone: none}", "start_deadline: 3s"}},
		{Name: "then", Overlap: "allow", Keys: []string{"after: {job: tick, on: always}"}},
		{Name: "both", Overlap: "allow", Keys: []string{"after: [{job: again, on: always}, {job: limited, on: always}]"}},
		{ // it never succeeds, so that the first look of every daemon finds it overdue
			Name: given, Schedule: everyOther, Command: []string{"/bin/sh", "-c", "sleep 0.5; exit 9"}, Keys: []string{"max_age: 1s"},
		},
	}}
}

// followers are the jobs that come after others.
func followers() map[string][]string {
	return map[string][]string{"then": {"tick"}, "both": {"again", "limited"}}
}

// given is the job whose runs are given away while they run: what the daemon then has to say of them comes too late. It
// records nothing, because it lives on when its row is finished.
const given = "given"

// giveAway finishes its running run as another replica would that believes it lost. An error is a database that is busy,
// or that the daemon was killed: the caller comes again.
func (f *Fleet) giveAway() {
	f.tb.Helper()
	if f.count(`job = ? AND state = 'running'`, given) == 0 {
		return
	}
	_, _ = f.DB.Main.NewRaw(`UPDATE job_runs SET state = 'finished', outcome = 'lost', reason = 'replica_lost', finished_at = started_at
		WHERE job = ? AND state = 'running'`, given).Exec(f.tb.Context())
}

// once gives all schedules another one.
func (s Settings) once(schedule string) Settings {
	s.Jobs = slices.Clone(s.Jobs)
	for i := range s.Jobs {
		if s.Jobs[i].Schedule != "" {
			s.Jobs[i].Schedule = schedule
		}
	}
	return s
}

// wreck is a fleet whose only daemon was killed in the middle of its work, some time ago: there are runs to recover, locks
// to take over and instants that nobody has planned. Every case begins with a copy of it.
type wreck struct {
	url string
	dir string // what its jobs have recorded
}

func newWreck(t *testing.T, url string) *wreck {
	t.Helper()
	w := &wreck{url: url, dir: t.TempDir()}
	t.Run("wreck", func(t *testing.T) { // with its end nobody is connected to the database
		f := New(t, url, statementSettings("30s"))
		run := f.Trigger("crashed")
		a := f.StartReady("old", unwatched)
		f.WaitAlive(run.ID, record.Main)
		until(t, "every schedule was planned", patience, func() bool { return f.allPlannedAfter(time.Unix(0, 0)) })
		f.Outlast(a.Kill())
		require.Empty(t, f.JobProcesses())
		copyRecord(t, f.dir, w.dir)
	})
	require.False(t, t.Failed())
	return w
}

// copyRecord copies what jobs have recorded.
func copyRecord(t *testing.T, from, to string) {
	t.Helper()
	registers, err := filepath.Glob(filepath.Join(from, "*.register"))
	require.NoError(t, err)
	for _, path := range slices.Concat(registers, []string{filepath.Join(from, "events")}) {
		copyFile(t, path, filepath.Join(to, filepath.Base(path)))
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o600))
}

// fleet is a copy of the wreck, without daemons.
func (w *wreck) fleet(t *testing.T) *Fleet {
	t.Helper()
	f := New(t, w.copy(t), statementSettings("100ms"))
	copyRecord(t, w.dir, f.dir)
	return f
}

// copy is the URL of a copy of the database.
func (w *wreck) copy(t *testing.T) (url string) {
	t.Helper()
	if path, lite := strings.CutPrefix(w.url, "sqlite:"); lite {
		return w.copyFile(t, path)
	}
	return dbtest.PostgresCopy(t, w.url)
}

func (w *wreck) copyFile(t *testing.T, path string) (url string) {
	t.Helper()
	dir, err := os.MkdirTemp(sharedPrograms(t).fast, "db-") //nolint:usetesting // that would be on the disk
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	to := filepath.Join(dir, "cronlatch.db")
	copyFile(t, path, to)
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		copyFile(t, path+"-wal", to+"-wal")
	}
	return "sqlite:" + to
}

func names(calendar map[string]string) []string { return slices.Sorted(maps.Keys(calendar)) }

// allPlannedAfter reports whether each schedule has a row for an instant after at.
func (f *Fleet) allPlannedAfter(at time.Time) bool {
	f.tb.Helper()
	arg := dbtime.Arg(f.DB.Main.Dialect().Name(), at)
	for job := range schedules(f.settings.Jobs) {
		if f.count(`job = ? AND scheduled_at > ?`, job, arg) == 0 {
			return false
		}
	}
	return true
}
