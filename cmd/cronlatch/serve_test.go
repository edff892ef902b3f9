package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "jobs: {}")
	for _, listen := range []string{"0.0.0.0:8420", ":8420", "192.0.2.1:8420", "[::]:8420", "example.com:8420", "localhost.example:1"} {
		w.run(t, "serve", "--listen", listen).says(t, exitConfig, "",
			"cronlatch: listen: "+listen+" can be reached from other machines, and tokens would cross the network in clear\n"+
				"cronlatch: set tls.cert and tls.key, or behind_proxy: true when a proxy in front ends TLS, or listen on 127.0.0.1, [::1] or unix:PATH\n")
	}
	w.run(t, "serve", "--listen", ":1", "--auth", "none", "--behind-proxy").says(t, exitConfig, "",
		"cronlatch: listen: :1 can be reached from other machines, and auth: none lets everybody in\n"+
			"cronlatch: remove auth: none (an admin token is generated then), or listen on 127.0.0.1, [::1] or unix:PATH\n")
	w.env["CRONLATCH_LISTEN"] = "0.0.0.0:1"
	assert.Equal(t, exitConfig, w.run(t, "serve").code)
	delete(w.env, "CRONLATCH_LISTEN")

	bad := w.run(t, "serve", "--lock-ttl", "soon", "--capacity", "-1", "--auth", "basic", "--tls-key", "x", "--token-file", " ")
	assert.Equal(t, exitUsage, bad.code, "only flags are wrong: %s", bad.errors)
	for _, flag := range []string{"--lock-ttl", "--capacity", "--auth", "--tls-key", "--token-file"} {
		assert.Contains(t, "\n"+bad.errors, "\n"+flag+": ", "under the name that it was given by")
	}

	w.env["CRONLATCH_CAPACITY"] = "many"
	assert.Equal(t, exitConfig, w.run(t, "serve").code)
	delete(w.env, "CRONLATCH_CAPACITY")

	name := w.run(t, "serve", "--replica", "a\nb")
	assert.Equal(t, exitUsage, name.code)
	assert.Contains(t, name.errors, `--replica "a\nb"`)
}

func TestTwoEndings(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 3)
	var order []string
	first, second := func() { order = append(order, "first") }, func() { order = append(order, "second") }
	signals <- syscall.SIGINT
	signals <- syscall.SIGTERM
	signals <- syscall.SIGINT
	inTurn(signals, first, second)
	assert.Equal(t, []string{"first", "second"}, order)

	close(signals)
	<-signals
	inTurn(signals, first, second)
	assert.Len(t, order, 2, "closed: nobody asked")
}

// child is cronlatch as a process.
type child struct {
	cmd    *exec.Cmd
	lines  chan string // of stderr
	output strings.Builder
	wg     sync.WaitGroup
}

// spawn starts the test binary as cronlatch in the world's folder.
func (w *world) spawn(t *testing.T, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := &child{cmd: exec.CommandContext(t.Context(), exe, args...), lines: make(chan string, 1000)}
	c.cmd.Dir = w.dir
	c.cmd.Env = []string{asCommand + "=" + w.patience.String(), "PATH=" + os.Getenv("PATH"), "HOME=" + w.dir}
	for name, value := range w.env {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = 20 * time.Second
	c.cmd.Stdout = &c.output
	stderr, err := c.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	c.wg.Go(func() { c.follow(stderr) })
	return c
}

func (c *child) follow(stderr io.Reader) {
	defer close(c.lines)
	for scan := bufio.NewScanner(stderr); scan.Scan(); {
		c.lines <- scan.Text()
	}
}

// waitFor reads stderr until a line contains the text.
func (c *child) waitFor(t *testing.T, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	var seen []string
	for {
		select {
		case line, ok := <-c.lines:
			seen = append(seen, line)
			if strings.Contains(line, text) {
				return line
			}
			require.True(t, ok, "the process ended without saying %q: %q", text, seen)
		case <-ctx.Done():
			require.Fail(t, "nothing said", "%q in %q", text, seen)
		}
	}
}

// end waits for the process and returns its exit code and the rest of what it said.
func (c *child) end(t *testing.T) (code int, rest string) {
	t.Helper()
	var b strings.Builder
	for line := range c.lines {
		b.WriteString(line + "\n")
	}
	c.wg.Wait()
	if err := c.cmd.Wait(); err != nil {
		var exited *exec.ExitError
		require.ErrorAs(t, err, &exited)
	}
	return c.cmd.ProcessState.ExitCode(), b.String()
}

func (c *child) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(s))
}

const endings3 = `
drain_timeout: 90s
defaults: {kill_after: 1s}
jobs:
  ok: {run: 'printf "a\nb\033[2J"; printf oops >&2'}
  fails: {run: "exit 3"}
  killed: {run: "kill -9 $$"}
  slow: {run: "sleep 100", timeout: 1s}
  missing: {command: [/no/such/program]}
  directory: {command: [/tmp]}
  loud: {run: "head -c 10000000 /dev/zero | tr '\\0' x"}
  long: {run: "echo started > long.txt; sleep 100"}
`

// serving starts a daemon with the jobs above on a database and waits until it is ready.
func serving(t *testing.T, url string) (*world, *child) {
	t.Helper()
	w := newWorld(t)
	w.write(t, endings3)
	w.env["DATABASE_URL"] = url
	daemon := w.spawn(t, "serve", "--replica", "a", "--listen", "127.0.0.1:0")
	daemon.waitFor(t, "replica a with 8 jobs of cronlatch.yaml")
	daemon.waitFor(t, "the state is in ")
	if os.Geteuid() == 0 {
		daemon.waitFor(t, "cronlatch: warning: this daemon runs as root, and so do its jobs")
	}
	_, address, _ := strings.Cut(daemon.waitFor(t, "ready at http://"), "ready at ")
	w.env["CRONLATCH_SERVER"] = address
	return w, daemon
}

// The exit code of `run` is the job's own, through a real daemon and real processes.
func TestRunExitsWithTheJobsCode(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w, daemon := serving(t, url)
		w.run(t, "health").says(t, exitOK, "ready\n", "")
		for job, want := range map[string]struct {
			code   int
			ending string
		}{
			"fails":     {3, "failed after .*: exit code 3"},
			"killed":    {137, "failed after .*: ended by SIGKILL"},
			"slow":      {124, "timed out after .*"},
			"missing":   {127, "failed after .*: the command could not be started"},
			"directory": {126, "failed after .*: the command could not be started"},
		} {
			got := w.run(t, "run", job)
			assert.Equal(t, want.code, got.code, job)
			assert.Regexp(t, "(?m)^cronlatch: run \\d+ of "+job+" on replica a "+want.ending+"$", got.errors)
		}
		ok := w.run(t, "run", "ok")
		assert.Equal(t, exitOK, ok.code)
		assert.Equal(t, "a\nb\x1b[2Joops", ok.out, "bytes as they are: this is no terminal")
		assert.Contains(t, ok.errors, "of ok on replica a succeeded")

		loud := w.run(t, "run", "loud")
		assert.Equal(t, exitOK, loud.code)
		assert.Less(t, len(loud.out), 10_000_000, "it prints faster than anybody could keep it")
		assert.Contains(t, loud.errors, " bytes are not kept here")

		runs := w.run(t, "runs", "list", "--job", "fails")
		assert.Regexp(t, `fails .* failed +exit 3 +a +\d+ `, runs.out)

		daemon.signal(t, syscall.SIGTERM)
		code, rest := daemon.end(t)
		assert.Equal(t, exitOK, code, rest)
		assert.Contains(t, daemon.output.String(), `"event.action":"run.finish"`, "the audit is on stdout")
	})
}

// Ctrl-C ends the waiting and not the run; the daemon's first end is polite, the second one is not.
func TestInterruptions(t *testing.T) {
	t.Parallel()
	w, daemon := serving(t, dbtest.SQLiteURL(t))
	client := w.spawn(t, "run", "long")
	client.waitFor(t, "of long is running on replica a")
	client.signal(t, syscall.SIGINT)
	code, rest := client.end(t)
	assert.Equal(t, 130, code)
	assert.Regexp(t, "^cronlatch: not waiting any longer; run \\d+ goes on\ncronlatch: `cronlatch runs list --job long` shows how it ends\n$", rest)
	assert.Contains(t, w.run(t, "runs", "list", "--state", "running").out, "long")

	daemon.signal(t, syscall.SIGINT)
	daemon.waitFor(t, "leaving: running jobs may finish within drain_timeout; once more to stop them now")
	eventually(t, func() bool { return w.run(t, "health").code == exitUnavailable }, "it is not ready any more")
	daemon.signal(t, syscall.SIGINT)
	hurried := time.Now()
	daemon.waitFor(t, "stopping running jobs now")
	code, rest = daemon.end(t)
	assert.Equal(t, exitOK, code, rest)
	assert.Less(t, time.Since(hurried), time.Minute, "without waiting for drain_timeout")
	delete(w.env, "CRONLATCH_SERVER") // it has gone; the database tells as much
	assert.Regexp(t, `long .* cancelled +drain`, w.run(t, "runs", "list", "--job", "long").out)
}

// The reader of the log may go away without taking the daemon with it.
func TestServeSurvivesAClosedPipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, endings3)
	exe, err := os.Executable()
	require.NoError(t, err)
	out, in, err := os.Pipe()
	require.NoError(t, err)
	daemon := exec.CommandContext(t.Context(), exe, "serve", "--listen", "127.0.0.1:0")
	daemon.Dir, daemon.Env = w.dir, []string{asCommand + "=" + w.patience.String(), "PATH=" + os.Getenv("PATH")}
	daemon.Stdout, daemon.Stderr = in, in
	require.NoError(t, daemon.Start())
	require.NoError(t, in.Close())
	log := bufio.NewReader(out)
	for line := ""; !strings.Contains(line, "ready at http://"); {
		line, err = log.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, out.Close())

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := w.runIn(ctx, "run", "fails")
	assert.Equal(t, 3, got.code, got.errors)
	require.NoError(t, daemon.Process.Signal(syscall.SIGTERM))
	require.NoError(t, daemon.Wait(), "a clean end")
}

func TestUnknownHiddenCommandsStayHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Equal(t, exitUsage, w.run(t, "supervise").code, "only main dispatches it")
}
