package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each command has a page that says all there is to say, and that groff reads without a complaint where there is one.
func TestManPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(w.dir, "man1")
	require.Equal(t, exitOK, w.run(t, "man", "--dir", dir).code)
	groff, _ := exec.LookPath("groff") // without it the structure alone is checked
	pages := 0
	everyCommand(t, func(t *testing.T, cmd *cobra.Command) {
		t.Helper()
		if cmd.Name() == "help" || cmd.Hidden {
			return
		}
		path := filepath.Join(dir, manName(cmd)+".1")
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		pages++
		for _, section := range []string{"NAME", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"} {
			assert.Contains(t, string(page), "\n.SH "+section+"\n", path)
		}
		for line := range strings.Lines(string(page)) {
			assert.NotRegexp(t, `^'|^\.(?:[^A-Znf]|$)`, line, path)
		}
		if groff == "" {
			return
		}
		said, err := exec.CommandContext(t.Context(), groff, "-man", "-Tascii", "-ww", "-z", path).CombinedOutput()
		require.NoError(t, err, "%s", said)
		assert.Empty(t, string(said), path)
	})
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, pages, "no page of nothing")
	one := w.run(t, "man", "runs", "list")
	same, err := os.ReadFile(filepath.Join(dir, "cronlatch-runs-list.1"))
	require.NoError(t, err)
	assert.Equal(t, string(same), one.out)
	assert.Equal(t, exitUsage, w.run(t, "man", "jbos").code)
}

func TestRoffEscapes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		".TH x": `\&.TH x`, "'so /etc/passwd": `\&'so /etc/passwd`, `a\nb`: `a\enb`, "--dir": `\-\-dir`, `say "x"`: `say \(dqx\(dq`, "a\n.b": "a .b",
	} {
		assert.Equal(t, want, roff(text))
	}
	assert.Equal(t, ".nf\n  a\n\\&.b\n.fi\n", literal("  a\n.b"))
}
