package configs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// firstProblem parses a file that must be refused.
func firstProblem(t *testing.T, text string) Problem {
	t.Helper()
	_, err := Parse("f", []byte(text), fixtureOptions())
	require.Error(t, err)
	checkReport(t, []byte(text), err)
	var report *Errors
	require.ErrorAs(t, err, &report)
	return report.Problems[0]
}

// TestHostileFiles would need gigabytes, minutes or the whole stack without the limits.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	const n = 50_000
	bombs := map[string]string{
		"brackets":  "jobs: " + strings.Repeat("[", n),
		"braces":    "jobs: " + strings.Repeat("{a: ", n),
		"dashes":    strings.Repeat("- ", n),
		"question":  strings.Repeat("? ", n),
		"colons":    strings.Repeat(": ", n),
		"in braces": "jobs: {a" + strings.Repeat(": ", n),
		"tags":      "jobs: " + strings.Repeat("!!a ", n),
		"anchors":   "jobs: " + strings.Repeat("&a ", n),
		"aliases":   "jobs: " + strings.Repeat("*a ", n),
		"headers":   strings.Repeat("---\n", n),
		"ends":      strings.Repeat("...\n", n),
		"quotes":    "jobs: " + strings.Repeat("\"\" ", n),
	}
	for name, text := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			firstProblem(t, text)
		})
	}
}

func TestFileOverOneMebibyte(t *testing.T) {
	t.Parallel()
	exact := "jobs: {}\n#"
	exact += strings.Repeat("x", maxBytes-len(exact))
	_, err := Parse("f", []byte(exact), Options{})
	require.NoError(t, err)
	p := firstProblem(t, exact+"x")
	assert.Equal(t, "f:1:1: the file has more than 1048576 bytes (1 MiB), the most that is read  [too-large]", p.String())
}

func TestAliasesAreCounted(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("jobs:\n  a: {run: x, env: &env {")
	for i := range 2_000 {
		fmt.Fprintf(&b, "K%d: v, ", i)
	}
	b.WriteString("}}\n")
	for i := range 1_000 {
		fmt.Fprintf(&b, "  b%d: {run: x, env: *env}\n", i)
	}
	_, err := Parse("f", []byte(b.String()), Options{})
	require.ErrorContains(t, err, "f:1:1: the file stands for more than 1000000 values; an alias repeats a large part too often  [too-large]")
}

func TestMergesAreCounted(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("base: &base {")
	for i := range 1_000 {
		fmt.Fprintf(&b, "k%d: v, ", i)
	}
	b.WriteString("}\njobs:\n")
	for i := range 200 {
		fmt.Fprintf(&b, "  b%d: {<<: *base, run: x}\n", i)
	}
	_, err := Parse("f", []byte(b.String()), Options{})
	require.ErrorContains(t, err, "f:1:1: merges (\"<<\") copy more than 100000 values  [too-large]")
}

func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	_, err := Parse("f", []byte("jobs:\n"+strings.Repeat("  a: {run: x}\n", 1_201)), Options{})
	var report *Errors
	require.ErrorAs(t, err, &report)
	assert.Len(t, report.Problems, maxProblems)
	assert.True(t, strings.HasSuffix(err.Error(), "\n1200 errors (100 shown) in 1 file. Nothing was loaded."))
}
