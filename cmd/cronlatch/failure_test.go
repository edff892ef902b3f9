package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/migrations"
)

func TestReport(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		code   int
		errors string
	}{
		{nil, 0, ""},
		{exit(0), 0, ""},
		{exit(3), 3, ""},
		{errors.New("x"), 1, "cronlatch: x\n"},
		{errors.New("two\nlines\x1b[2J"), 1, "cronlatch: two\\nlines\\x1b[2J\n"},
		{jobs.ErrRunNotFound, 1, "cronlatch: jobs: no such run\n"},
		{migrations.ErrNewer, 1, "cronlatch: migrations: the schema is newer than this binary\n"},
		{database.ErrRefused, 78, "cronlatch: database refused\n"},
		{fmt.Errorf("asking: %w", context.DeadlineExceeded), 69, "cronlatch: asking: context deadline exceeded\n"},
		{fmt.Errorf("asking: %w", context.Canceled), 130, "cronlatch: interrupted\n"},
		{usage("no"), 64, "cronlatch: no\n"},
		{errors.Join(usage("no").withHint("do %s", "so"), errors.New("and this")), 64, "cronlatch: no\ncronlatch: do so\n"},
		{fmt.Errorf("wrapped: %w", exit(76)), 76, ""},
		{
			&failure{code: exitConfig, err: &configs.Errors{Problems: []configs.Problem{{File: "f\x1b", Line: 1, Column: 2, Message: "m", Code: "c"}}}}, 78,
			"f\\x1b:1:2: m  [c]\n1 error in 1 file. Nothing was loaded.\n",
		},
	} {
		var stderr bytes.Buffer
		a := &app{process: process{Stderr: &stderr}}
		assert.Equal(t, c.code, a.report(c.err))
		assert.Equal(t, c.errors, stderr.String())
	}
	assert.Equal(t, "exit code 3", exit(3).Error())
	require.ErrorIs(t, fail(1, "x: %w", jobs.ErrRunNotFound), jobs.ErrRunNotFound)
}

func TestUnanswered(t *testing.T) {
	t.Parallel()
	const hint = "the run may be in the ledger all the same; asking again with --request-id k1 finds it"
	f := unanswered(t.Context(), "the database x", unreachable("the database x", context.DeadlineExceeded), "k1")
	assert.Equal(t, exitUnavailable, f.code)
	require.EqualError(t, f, "the database x cannot be reached: context deadline exceeded")
	assert.Equal(t, hint, f.hint)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f = unanswered(ctx, "the database x", context.Canceled, "k1")
	assert.Equal(t, 130, f.code)
	require.EqualError(t, f, "interrupted before the database x answered")
	assert.Equal(t, hint, f.hint)
}

func TestColorOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, twoJobs)
	w.terminal = true
	assert.Contains(t, w.run(t, "jobs", "list").out, output.Bold.Paint("JOB"))
	w.env["NO_COLOR"] = "1"
	assert.NotContains(t, w.run(t, "jobs", "list").out, "\x1b")
}
