//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// On a terminal it asks, and only a yes starts anything. The answer on stdout stays one document.
func TestBackfillAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, daily)
	w.env["DATABASE_URL"] = dbtest.SQLiteURL(t)
	terminal := openPTY(t)
	fill := func(typed string, more ...string) (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		terminal.types(t, typed)
		code = run(t.Context(), process{
			Args:  append([]string{"jobs", "backfill", "report", "--from", "2026-01-02T00:00:00Z", "--until", "2026-01-05T00:00:00Z"}, more...),
			Stdin: terminal.slave, Stdout: &stdout, Stderr: &stderr,
			Getenv: func(name string) string { return w.env[name] }, Dir: w.dir, Now: testNow, Patience: w.patience,
		})
		return code, stdout.String(), stderr.String()
	}
	for _, typed := range []string{"\n", "no\n", "yess\n"} {
		code, out, errs := fill(typed)
		assert.Equal(t, exitFailure, code, errs)
		assert.Contains(t, out, "3 instants of report would run, 0 are left out\n")
		assert.Equal(t, "cronlatch: start these 3 runs? (y/N)\ncronlatch: nothing was started\n", errs)
	}
	assert.Empty(t, w.run(t, "runs", "list", "-o", "name").out)
	code, out, errs := fill("y\n", "-o", "json")
	assert.Equal(t, exitOK, code, errs)
	assert.Equal(t, 3, decode[wire.Backfilled](t, out).Runs)
	assert.Contains(t, errs, "cronlatch: 3 instants of report would run, 0 are left out\n")
	assert.Equal(t, 3, strings.Count(w.run(t, "runs", "list", "-o", "name").out, "\n"))
}
