package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for shell, word := range map[string]string{
		"bash": "complete -o default", "zsh": "#compdef cronlatch", "fish": "complete -c cronlatch", "powershell": "Register-ArgumentCompleter",
	} {
		got := w.run(t, "completion", shell)
		assert.Equal(t, exitOK, got.code, got.errors)
		assert.Contains(t, got.out, word)
	}
	w.run(t, "completion", "fsh").says(t, exitUsage, "",
		"cronlatch: there is no completion for \"fsh\", did you mean \"zsh\"?\ncronlatch: it is one of bash, zsh, fish, powershell\n")
}

// completions are what a shell is offered, without the descriptions and the directive.
func (w *world) completions(t *testing.T, words ...string) (offered []string) {
	t.Helper()
	got := w.run(t, append([]string{"__complete"}, words...)...)
	assert.Equal(t, exitOK, got.code, got.errors)
	for line := range strings.Lines(got.out) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); word != "" && !strings.HasPrefix(word, ":") {
			offered = append(offered, word)
		}
	}
	return offered
}

func TestCompletionKnowsNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, twoJobs)
	w.env["DATABASE_URL"] = "postgres://nobody@127.0.0.1:1/none" // nobody answers there
	assert.Equal(t, []string{"backup:db"}, w.completions(t, "run", "ba"))
	assert.Equal(t, []string{"backup:db", "by-hand"}, w.completions(t, "next", "b"))
	assert.Contains(t, w.completions(t, "runs", "list", "--outcome", "s"), "succeeded")
	assert.Equal(t, []string{"backup:db"}, w.completions(t, "runs", "list", "--job", "ba"))
	assert.Empty(t, w.completions(t, "locks", "show", ""))
	assert.Equal(t, []string{"demo"}, w.completions(t, "dem"))
	assert.Equal(t, []string{"zsh"}, w.completions(t, "completion", "z"))
	w.write(t, "jobs: [")
	assert.Empty(t, w.completions(t, "run", "ba"), "a broken file completes nothing")
}

func TestCompletionAsksTheDatabase(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		id := strings.TrimSpace(w.run(t, "run", "backup:db", "--detach").out)
		assert.Contains(t, w.completions(t, "logs", ""), id)
		assert.Contains(t, w.completions(t, "logs", ""), "backup:db")
	})
}
