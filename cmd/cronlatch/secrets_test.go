package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// TestPlanSeesEveryKeyAndShowsNoSecret: a secret that differs is a change, and what it is stays untold.
func TestPlanSeesEveryKeyAndShowsNoSecret(t *testing.T) {
	t.Parallel()
	const head, job = "channels: {ops: {slack: {url: \"https://example.com/hunter2-canary\"}}}\n", "jobs:\n  a: {run: \"true\", "
	w, daemon := reloadable(t, dbtest.SQLiteURL(t), head+job+"secrets: {TOKEN: hunter2-canary}}\n", "--watch=false")
	defer daemon.leave(t)
	agrees := func() bool { return w.run(t, "plan").code == exitOK }
	eventually(t, agrees)
	for _, keys := range []string{
		`secrets: {TOKEN: hunter3-canary}`, `secrets: {OTHER: hunter2-canary}`, `secrets: {TOKEN: hunter2-canary}, params: {x: {}}`,
		`secrets: {TOKEN: hunter2-canary}, notify: {on_failure: [ops]}`, `secrets: {TOKEN: hunter2-canary}, late_after: 5m`,
		`secrets: {TOKEN: hunter2-canary}, ping: "https://example.com/hunter2-canary"`, `secrets: {TOKEN: hunter2-canary}, user: nobody`,
		`secrets: {TOKEN: hunter2-canary}, history: {keep: 1}`,
	} {
		w.write(t, head+job+keys+"}\n")
		for _, format := range []string{"table", "json", "yaml"} {
			got := w.run(t, "plan", "-o", format)
			assert.Equal(t, exitChanges, got.code, keys)
			assert.Contains(t, got.errors, "1 replica of 1 with other definitions: a", keys)
			assert.NotContains(t, got.out+got.errors, "canary", keys)
		}
	}
}

// TestNoCommandShowsASecret: neither those that read the file, nor those that ask for a job.
func TestNoCommandShowsASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["DATABASE_URL"], w.env["SECRET"] = dbtest.SQLiteURL(t), "hunter2-canary"
	w.file(t, "pg", "hunter2-canary\n")
	w.write(t, `
channels: {ops: {webhook: {url: "https://example.com/${SECRET}", secret: "${SECRET}"}}}
tracing: {endpoint: "http://c:4318", headers: {Authorization: "${SECRET}"}}
jobs:
  a: {run: "true", schedule: "@daily", secrets: {TOKEN: "${SECRET}", PG: "${file:pg}", PLAIN: hunter2-canary}, ping: "https://example.com/${SECRET}"}
`)
	for _, line := range []string{
		"validate", "validate -o json", "validate -o github", "next", "next -o json", "plan", "plan -o json", "schema",
		"jobs list", "jobs list -o json", "jobs show a", "jobs show a -o json", "jobs show a -o yaml", "explain a",
	} {
		got := w.run(t, strings.Fields(line)...)
		assert.NotContains(t, got.out+got.errors, "canary", line)
		assert.NotEqual(t, exitConfig, got.code, "%s: %s", line, got.errors)
	}
}
