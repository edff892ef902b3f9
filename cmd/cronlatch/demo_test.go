package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// demoPatience is for what waits for a lock to expire, and for a busy machine.
const demoPatience = 5 * time.Minute // the history of a month is made first, also by a binary with the race detector

// telling reads what a demo tells on stdout.
type telling struct {
	lines chan string
	seen  []string
}

func (l *telling) follow(out io.Reader) {
	defer close(l.lines)
	for scan := bufio.NewScanner(out); scan.Scan(); {
		l.lines <- scan.Text()
	}
}

// until reads up to a line that matches, and returns what its groups are.
func (l *telling) until(t *testing.T, pattern string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), demoPatience)
	defer cancel()
	for expr := regexp.MustCompile(pattern); ; {
		select {
		case line, ok := <-l.lines:
			require.True(t, ok, "the demo ended without %q: %s", pattern, strings.Join(l.seen, "\n"))
			l.seen = append(l.seen, line)
			if groups := expr.FindStringSubmatch(line); groups != nil {
				return groups
			}
		case <-ctx.Done():
			require.Fail(t, "nothing said", "%q in %s", pattern, strings.Join(l.seen, "\n"))
		}
	}
}

// inFolder are the processes that work in a folder or below: the daemons of a demo and their jobs. A supervisor is its
// daemon's child until that dies.
func inFolder(dir string) (pids []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is right
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && (at == dir || strings.HasPrefix(at, dir+"/")) && filepath.Dir(link) != "/proc/self" {
			pids = append(pids, filepath.Base(filepath.Dir(link)))
		}
	}
	return pids
}

// A demo from its first line to the last: three replicas with a history, a takeover to be seen, and nothing left behind.
func TestDemo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	temp := t.TempDir()
	w.env["TMPDIR"] = temp
	dir := filepath.Join(temp, "demo")
	w.spawn(t, "demo", "kill").says(t, exitFailure, "no demo is running")

	d := w.spawnDemo(t, "demo", "--dir", dir, "--listen-base", "18420")
	d.until(t, "replica b claimed index:search as run")
	holder := d.until(t, `cronlatch demo kill ([abc])$`)[1] // who has it to begin with: a run takes a minute

	t.Log("a replica that is killed is followed by another one, with a greater token")
	w.spawn(t, "demo", "kill", "x").says(t, exitFailure, `there is no replica "x"`)
	w.spawn(t, "demo", "kill", holder).says(t, exitOK, "replica "+holder+" is killed; it held ")
	before := d.until(t, `cannot renew .*index:search \(token (\d+)\)`)
	after := d.until(t, `TAKEOVER: replica ([abc]) claimed index:search .* from replica `+holder+`: the fencing token grew from (\d+) to (\d+)`)
	assert.NotEqual(t, holder, after[1])
	assert.Equal(t, before[1], after[2])
	assert.Greater(t, atoi(t, after[3]), atoi(t, after[2]))
	d.until(t, "replica "+holder+" is back at http://127.0.0.1:")

	t.Log("the history is there, with all outcomes")
	w.env["CRONLATCH_CONFIG"] = filepath.Join(dir, "cronlatch.yaml")
	for _, outcome := range []string{"succeeded", "failed", "timed_out", "cancelled", "skipped", "missed", "lost"} {
		got := w.run(t, "runs", "list", "--outcome", outcome, "--limit", "1", "-o", "name")
		assert.Equal(t, exitOK, got.code, got.errors)
		assert.NotEmpty(t, got.out, outcome)
	}
	old := decode[[]map[string]any](t, w.run(t, "runs", "list", "--job", "backup:db", "--limit", "100", "-o", "json").out)
	require.NotEmpty(t, old)
	first, err := time.Parse(time.RFC3339, old[len(old)-1]["scheduled_at"].(string)) //nolint:forcetypeassert // a test
	require.NoError(t, err)
	assert.Greater(t, time.Since(first), 29*24*time.Hour)

	t.Log("Ctrl-C ends all, and leaves what was asked for")
	d.child.signal(t, syscall.SIGINT)
	d.until(t, "kept: ")
	code, rest := d.child.end(t)
	assert.Equal(t, exitOK, code, rest)
	assert.Empty(t, inFolder(dir), "processes that were left behind")
	left, err := filepath.Glob(filepath.Join(temp, "cronlatch-demo-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.NoFileExists(t, filepath.Join(dir, "demo.json"))
	w.spawn(t, "demo", "kill").says(t, exitFailure, "no demo is running")
	w.spawn(t, "demo", "--dir", dir).says(t, exitFailure, "is not empty")
}

type runningDemo struct {
	*telling

	child *child
}

func (w *world) spawnDemo(t *testing.T, args ...string) runningDemo {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	d := runningDemo{&telling{lines: make(chan string, 10_000)}, w.start(t, write, args...)}
	require.NoError(t, write.Close())
	d.child.wg.Go(func() { d.follow(read) })
	t.Cleanup(func() { _ = read.Close() })
	return d
}

// start is spawn with a stdout of the caller's.
func (w *world) start(t *testing.T, stdout *os.File, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := &child{cmd: exec.CommandContext(t.Context(), exe, args...), lines: make(chan string, 1000)}
	c.cmd.Dir, c.cmd.Stdout = w.dir, stdout
	c.cmd.Env = []string{asCommand + "=" + w.patience.String(), "PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + w.env["TMPDIR"]}
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = demoPatience
	stderr, err := c.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	c.wg.Go(func() { c.follow(stderr) })
	return c
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// says waits for a child's end and looks for words on stderr.
func (c *child) says(t *testing.T, code int, words string) {
	t.Helper()
	got, rest := c.end(t)
	assert.Equal(t, code, got, rest)
	assert.Contains(t, rest, words)
}
