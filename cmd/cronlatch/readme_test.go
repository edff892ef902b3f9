package main

import (
	"os"
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
