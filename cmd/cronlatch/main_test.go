package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asCommand makes the test binary cronlatch itself, with that patience, for tests that need a process.
const asCommand = "CRONLATCH_TEST_COMMAND"

// testPatience is what a command has that takes milliseconds on an idle machine, and what a test waits for it.
const testPatience = time.Minute

func TestMain(m *testing.M) {
	// The daemon starts its supervisor as the running binary, with an environment of its own.
	hidden := len(os.Args) > 1 && (os.Args[1] == "supervise" || os.Args[1] == "exec-child")
	if own, err := time.ParseDuration(os.Getenv(asCommand)); err == nil || hidden {
		os.Exit(start(os.Args, own))
	}
	goleak.VerifyTestMain(m)
}

// testNow is the time at which every test command runs, a Sunday.
func testNow() time.Time { return time.Date(2026, 3, 8, 5, 0, 0, 0, time.UTC) }

// world is what one test's commands see.
type world struct {
	dir string
	env map[string]string
	// patience is long unless it is what the test is about: the machine may be busy.
	patience time.Duration
	terminal bool
	now      func() time.Time
}

// answer is what one command did.
type answer struct {
	code   int
	out    string
	errors string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{dir: t.TempDir(), env: map[string]string{}, patience: testPatience, now: testNow}
}

// write makes the configuration file.
func (w *world) write(t *testing.T, yaml string) {
	t.Helper()
	w.file(t, "cronlatch.yaml", yaml)
}

func (w *world) file(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
}

func (w *world) run(t *testing.T, args ...string) answer {
	t.Helper()
	return w.runIn(t.Context(), args...)
}

func (w *world) runIn(ctx context.Context, args ...string) answer {
	var out, errors bytes.Buffer
	code := run(ctx, process{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errors,
		Getenv: func(name string) string { return w.env[name] }, Dir: w.dir, Now: w.clock(), Patience: w.patience, Terminal: w.terminal,
	})
	return answer{code, out.String(), strings.ReplaceAll(errors.String(), w.dir+string(filepath.Separator), "DIR/")}
}

// clock is that of the commands; a world that was put together by hand has the one of newWorld.
func (w *world) clock() func() time.Time {
	if w.now == nil {
		return testNow
	}
	return w.now
}

// says compares the whole answer, byte by byte.
func (a answer) says(t *testing.T, code int, out, errors string) {
	t.Helper()
	assert.Equal(t, out, a.out, "stdout")
	assert.Equal(t, errors, a.errors, "stderr")
	assert.Equal(t, code, a.code, "exit code")
}

// eventually waits for what comes soon on an idle machine.
func eventually(t *testing.T, condition func() bool, what ...any) {
	t.Helper()
	require.Eventually(t, condition, testPatience, 50*time.Millisecond, what...)
}

const twoJobs = `
defaults: {timezone: America/New_York}
jobs:
  backup:db:
    description: "Nightly\x1b[2J backup"
    tags: [ops]
    schedule: "30 2 * * *"
    run: pg_dump
    timeout: 90m
    overlap: queue
  report:monthly-YYYY-MM:
    schedule: "0 6 1 * *"
    timezone: UTC
    resource_offset: -1mo
    command: [report]
    enabled: false
    on_lost: hold
    tags: [finance, ops]
  by-hand:
    run: "true"
`

func parse(t *testing.T, duration string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(duration)
	require.NoError(t, err)
	return d
}
