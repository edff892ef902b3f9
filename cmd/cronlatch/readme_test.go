package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/configs"
)

// block is the first code block of a section of the README.
func block(t *testing.T, section, language string) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(readme), "\n## "+section+"\n")
	require.True(t, found, section)
	_, after, found = strings.Cut(after, "```"+language+"\n")
	require.True(t, found, language)
	text, _, _ := strings.Cut(after, "```")
	return text
}

// The commands of "Five minutes", line by line, in an empty folder; only the ports are any free ones.
func TestTheFiveMinutesOfTheReadme(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "deploy.sh"), []byte("#!/bin/sh\nexit 7\n"), 0o700))
	var daemons []*child
	for line := range strings.Lines(block(t, "Five minutes", "sh")) {
		command, _, _ := strings.Cut(line, "#")
		args := strings.Fields(command)
		require.Equal(t, "cronlatch", args[0], line)
		if args[1] == "serve" {
			if at := strings.Index(command, " --listen"); at > 0 {
				args = strings.Fields(command[:at])
			}
			daemon := w.spawn(t, append(args[1:], "--listen", "127.0.0.1:0")...)
			daemon.waitFor(t, "ready at http://")
			daemons = append(daemons, daemon)
			continue
		}
		if args[1] == "lock" {
			code, rest := w.spawn(t, args[1:]...).end(t)
			assert.Equal(t, 7, code, rest)
			continue
		}
		got := w.run(t, args[1:]...)
		assert.Equal(t, exitOK, got.code, "%s: %s%s", strings.TrimSpace(line), got.out, got.errors)
	}
	require.Len(t, daemons, 2)
	assert.Regexp(t, `(?m)^ *\d+ +report:monthly .*succeeded`, w.run(t, "runs", "list").out)
	for _, daemon := range daemons {
		daemon.signal(t, syscall.SIGTERM)
		code, rest := daemon.end(t)
		assert.Equal(t, exitOK, code, rest)
	}
}

func TestTheJobOfTheReadmeLoads(t *testing.T) {
	t.Parallel()
	_, err := configs.Parse("README.md", []byte(block(t, "Five minutes", "yaml")), configs.Options{})
	require.NoError(t, err)
}

// step is a command that a person types, and what the README says comes of it.
type step struct{ command, says string }

// steps reads a block of commands behind "$ " and their output.
func steps(t *testing.T, console string) []step {
	t.Helper()
	var all []step
	for line := range strings.Lines(console) {
		command, typed := strings.CutPrefix(line, "$ ")
		switch {
		case typed:
			all = append(all, step{command: command})
		case strings.TrimSpace(line) != "":
			require.NotEmpty(t, all, line)
			all[len(all)-1].says += line
		}
	}
	return all
}

// unstable is what is another one each time: times, what is left of them, ids of requests.
var unstable = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"|"remaining_ms":\d+|"retry_after_seconds":\d+|"request_id":"[A-Z0-9]+"`)

func stable(text string) string {
	return unstable.ReplaceAllStringFunc(text, func(found string) string {
		name, _, _ := strings.Cut(found, ":")
		if strings.HasPrefix(found, `"2`) {
			return "TIME"
		}
		return name + ":ANY"
	})
}

// The walk through the lock service, typed into one shell; only the port is any free one.
func TestTheLockServiceOfTheReadme(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "jobs: {}\n")
	require.Contains(t, block(t, "The lock service", "sh"), "echo 'jobs: {}' > cronlatch.yaml")
	daemon := w.spawn(t, "serve", "--listen", "127.0.0.1:0")
	_, address, found := strings.Cut(daemon.waitFor(t, "ready at http://"), "http://")
	require.True(t, found)

	const mark = "--- end of step"
	typed := steps(t, block(t, "The lock service", "console"))
	require.Greater(t, len(typed), 10)
	var script strings.Builder
	for _, s := range typed {
		script.WriteString(strings.ReplaceAll(s.command, "127.0.0.1:8420", strings.TrimSpace(address)) + "echo '" + mark + "'\n")
	}
	shell := exec.CommandContext(t.Context(), "bash", "-eu")
	shell.Dir, shell.Stdin = w.dir, strings.NewReader(script.String())
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir}
	out, err := shell.Output()
	require.NoError(t, err, "%s", out)
	answers := strings.Split(string(out), mark+"\n")
	require.Len(t, answers, len(typed)+1)
	for i, s := range typed {
		assert.Equal(t, stable(s.says), stable(answers[i]), s.command)
	}
	daemon.signal(t, syscall.SIGTERM)
	code, rest := daemon.end(t)
	assert.Equal(t, exitOK, code, rest)
}
