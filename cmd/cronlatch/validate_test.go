package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Warnings are no errors, unless somebody says so.
func TestValidateWarns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "jobs:\n  a: {run: x, schedule: \"*/7 * * * *\"}\n")
	const table = "JOB  SCHEDULE     ZONE  NEXT                                    DESCRIPTION\n" +
		"a    */7 * * * *  UTC   Sun 2026-03-08 05:07:00 +00:00 (in 7m)\n"
	const text = `DIR/cronlatch.yaml:2:26: warning: not every 7 minutes: the step starts again, and between :56 and :00 there are 4 minutes; ` +
		`a step of 6 or 10 is even, "@every 7m" has equal gaps  [uneven-step]
    2 |   a: {run: x, schedule: "*/7 * * * *"}
      |                          ^~~
1 warning in 1 file.
cronlatch: DIR/cronlatch.yaml: valid, 1 job
`
	w.run(t, "validate").says(t, exitOK, table, text)
	w.run(t, "validate", "--strict").says(t, exitConfig, table, text)

	asJSON := w.run(t, "validate", "-o", "json")
	assert.Equal(t, exitOK, asJSON.code)
	var problems []map[string]any
	require.NoError(t, json.Unmarshal([]byte(asJSON.out), &problems))
	require.Len(t, problems, 1)
	assert.Equal(t, true, problems[0]["warning"])
	assert.InDelta(t, 2, problems[0]["line"], 0)
	github := w.run(t, "validate", "--strict", "-o", "github")
	assert.Equal(t, exitConfig, github.code)
	assert.Contains(t, github.out, "cronlatch.yaml,line=2,col=26,endColumn=29,title=uneven-step::")
	assert.True(t, strings.HasPrefix(github.out, "::warning file="), github.out)
}

// The errors of one file and the warnings of another are in one answer.
func TestValidateTellsWarningsFromErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file(t, "odd.yaml", "jobs:\n  a: {run: x, schedule: \"*/7 * * * *\"}\n")
	w.file(t, "bad.yaml", "jobs:\n  a: {run: x, oops: 1}\n")
	got := w.run(t, "validate", "odd.yaml", "bad.yaml")
	assert.Equal(t, exitConfig, got.code)
	assert.Empty(t, got.out)
	assert.Contains(t, got.errors, "1 error and 1 warning in 2 files. Nothing was loaded.\n")
	w.file(t, "good.yaml", "jobs: {}\n")
	assert.Equal(t, exitOK, w.run(t, "validate", "--strict", "good.yaml").code)
}

// What init writes is the schema of this program, and accepts what init writes.
func TestSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.run(t, "schema")
	assert.Equal(t, exitOK, got.code)
	assert.Empty(t, got.errors)
	require.Equal(t, exitOK, w.run(t, "init").code)
	written, err := os.ReadFile(filepath.Join(w.dir, "cronlatch.schema.json"))
	require.NoError(t, err)
	assert.Equal(t, got.out, string(written))

	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(written))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema", doc))
	schema, err := c.Compile("schema")
	require.NoError(t, err)
	jobs := func(job map[string]any) any { return map[string]any{"jobs": map[string]any{"a": job}} }
	require.NoError(t, schema.Validate(jobs(map[string]any{"run": "x", "schedule": "@daily"})))
	require.Error(t, schema.Validate(jobs(map[string]any{"run": "x", "schedul": "@daily"})))
}
