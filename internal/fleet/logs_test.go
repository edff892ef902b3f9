package fleet

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/jobs"
)

// talk prints a line each time that somebody makes the next file, and ends with the file "end".
func talk(f string) []string {
	return []string{"/bin/sh", "-c", `n=1; while :; do
	if [ -e ` + f + `/say-$n ]; then echo "line $n"; n=$((n+1)); elif [ -e ` + f + `/end ]; then exit 0; else sleep 0.02; fi; done`}
}

// following is `cronlatch logs -f` in a process of its own.
type following struct {
	f    *Fleet
	code chan int

	mu       sync.Mutex
	out, err bytes.Buffer
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// follow reads a run through a replica, or straight on the database when there is none.
func (f *Fleet) follow(r *Replica, run int64, more ...string) (l *following, stop func()) {
	f.tb.Helper()
	l = &following{f: f, code: make(chan int, 1)}
	args := append([]string{"logs", strconv.FormatInt(run, 10), "-f"}, more...)
	if r != nil {
		args = append(args, "--server", r.address())
	}
	cmd := f.command(args...)
	if r != nil {
		cmd.Env = append(cmd.Env, "CRONLATCH_TOKEN="+f.token())
	}
	cmd.Stdout, cmd.Stderr = lockedWriter{&l.mu, &l.out}, lockedWriter{&l.mu, &l.err}
	f.must(cmd.Start())
	go func() { // ends with the command, which the fleet's clean-up kills
		_ = cmd.Wait()
		l.code <- cmd.ProcessState.ExitCode()
	}()
	return l, func() { _ = cmd.Process.Kill(); <-l.code }
}

// token is that of the first admin, which the first daemon has left in its file.
func (f *Fleet) token() string {
	f.tb.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "cronlatch.token"))
	f.must(err)
	return strings.TrimSpace(string(text))
}

func (l *following) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// shows waits for exactly this output, and returns how long it has waited.
func (l *following) shows(want string) (took time.Duration) {
	l.f.tb.Helper()
	asked := boottime.Now()
	until(l.f.tb, "the log is "+strconv.Quote(want), patience, func() bool { return l.text() == want })
	return boottime.Now() - asked
}

func (f *Fleet) say(n int) {
	f.tb.Helper()
	f.allow("say-" + strconv.Itoa(n))
}

// runner is the replica that has the run.
func (f *Fleet) runner(run int64) (name string) {
	f.tb.Helper()
	until(f.tb, "the run has begun", patience, func() bool {
		r, err := f.Ledger.Get(f.tb.Context(), run)
		f.must(err)
		name = r.Replica
		return r.State == jobs.StateRunning
	})
	return name
}

// shownWithin is the second in which a line must be there, with room for a busy machine.
const shownWithin = 3 * time.Second

// What a job prints on one replica is there within a second on the others and on the database. Who goes on from an offset sees
// nothing twice and misses nothing. When the replica is killed, what was printed before stays.
func TestLogsFromAnyReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := New(t, url, Settings{TTL: roomyTTL, Jobs: []Job{{Name: "talks"}}})
		f.settings.Jobs[0].Command = talk(f.dir)
		f.Configure(f.settings)
		replicas := map[string]*Replica{}
		for _, name := range []string{"a", "b", "c"} {
			replicas[name] = f.StartReady(name)
		}
		run := f.Trigger("talks")
		runner := replicas[f.runner(run.ID)]
		var other *Replica
		for _, r := range replicas {
			if r != runner {
				other = r
			}
		}
		there, stop := f.follow(other, run.ID)
		there.shows("")
		f.say(1)
		there.shows("line 1\n") // the command has begun now, and its connection is there
		f.say(2)
		took := []time.Duration{there.shows("line 1\nline 2\n")}
		stop()

		f.say(3)
		again, stopAgain := f.follow(other, run.ID, "--offset", strconv.Itoa(len("line 1\nline 2\n")))
		again.shows("line 3\n")
		direct, stopDirect := f.follow(nil, run.ID)
		direct.shows("line 1\nline 2\nline 3\n")
		f.say(4)
		took = append(took, again.shows("line 3\nline 4\n"), direct.shows("line 1\nline 2\nline 3\nline 4\n"))
		keptPromise(t, took, shownWithin)
		defer stopDirect()
		defer stopAgain()

		runner.Kill()
		f.WaitFinished(run.ID)
		assert.Zero(t, <-again.code, "the run has ended")
		again.code <- 0 // for stop
		assert.Equal(t, "line 3\nline 4\n", again.text())
		code, out := f.Cronlatch("logs", strconv.FormatInt(run.ID, 10))
		assert.Zero(t, code)
		assert.Equal(t, "line 1\nline 2\nline 3\nline 4\n", out)

		second := f.Trigger("talks") // its lines are said already
		f.runner(second.ID)
		f.allow("end")
		last, stopLast := f.follow(other, second.ID)
		defer stopLast()
		assert.Zero(t, <-last.code)
		last.code <- 0
		assert.Equal(t, "line 1\nline 2\nline 3\nline 4\n", last.text())
		require.Equal(t, jobs.OutcomeSucceeded, f.WaitFinished(second.ID).Outcome)
		assert.Zero(t, f.countChunks(second.ID), "the stored output has taken their place")
	})
}

func (f *Fleet) countChunks(run int64) (n int) {
	f.tb.Helper()
	f.must(f.DB.Main.NewRaw(`SELECT count(*) FROM run_output_chunks WHERE run_id = ?`, run).Scan(f.tb.Context(), &n))
	return n
}
