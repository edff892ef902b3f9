package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	assert.Empty(t, w.completions(t, "run", "backup:db", "b"), "it runs one")
	assert.Equal(t, []string{"by-hand"}, w.completions(t, "jobs", "pause", "backup:db", "b"), "it pauses several")
	assert.Contains(t, w.completions(t, "help", "ex"), "exit-codes")
	assert.Equal(t, []string{"pause", "paused"}, w.completions(t, "man", "jobs", "pause"))
	assert.Equal(t, ":0\n", w.run(t, "__complete", "lock", "x", "--", "./de").out, "the shell completes the names of files")
	w.write(t, "jobs: [")
	assert.Empty(t, w.completions(t, "run", "ba"), "a broken file completes nothing")
}

func TestCompletionAsksTheDatabase(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		w.patience = completionShare * testPatience
		id := strings.TrimSpace(w.run(t, "run", "backup:db", "--detach").out)
		assert.Contains(t, w.completions(t, "logs", ""), id)
		assert.Contains(t, w.completions(t, "logs", ""), "backup:db")
	})
}

// The script completes in a bash that has nothing but itself, whatever readline takes for a word.
func TestCompletionInABareBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	w := newWorld(t)
	script := w.run(t, "completion", "bash").out
	fake := filepath.Join(w.dir, "cronlatch")                                                                               // says what it is asked, and answers as the program would
	require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\necho \"$@\" >>asked\necho report:monthly\necho :4\n"), 0o700)) //nolint:gosec // a program
	for _, c := range []struct{ line, words, asked, reply string }{
		{"cronlatch run rep", "cronlatch run rep", "run rep", "report:monthly"},
		{"cronlatch  run report:mo", "cronlatch run report : mo", "run report:mo", "monthly"},
		{"cronlatch run report:", "cronlatch run report :", "run report:", "monthly"},
		{"cronlatch runs list --job=rep", "cronlatch runs list --job = rep", "runs list --job=rep", "report:monthly"},
		{"cronlatch run ", "cronlatch run ''", "run ", "report:monthly"},
	} {
		_ = os.Remove(filepath.Join(w.dir, "asked"))
		cmd := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-c", script+`
compopt() { :; } # there is no completion going on
COMP_WORDS=(`+c.words+`) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
__start_cronlatch && echo "${COMPREPLY[@]}"`, "bash", c.line)
		cmd.Dir, cmd.Env = w.dir, []string{"PATH=" + w.dir + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", c.line, out)
		assert.Equal(t, c.reply+"\n", string(out), c.line)
		asked, err := os.ReadFile(filepath.Join(w.dir, "asked"))
		require.NoError(t, err)
		assert.Equal(t, "__complete "+c.asked+"\n", string(asked))
	}
}
