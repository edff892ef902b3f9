package configs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInclude: jobs of all files are in one set; defaults of a file are those of the one that includes it, and its own.
func TestInclude(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/include.yaml")
	require.NoError(t, err)
	c, err := Parse("include.yaml", data, fixtureOptions())
	require.NoError(t, err)
	var have []string
	for _, j := range c.Jobs {
		zone := ""
		if j.Schedule != nil {
			zone = j.Schedule.Location().String()
		}
		have = append(have, fmt.Sprint(j.Name, " ", zone, " ", j.Timeout, " ", j.Env))
	}
	assert.Equal(t, []string{
		"a Europe/Berlin 1h0m0s map[REGION:eu TEAM:ops]", "a#on_failure  1h0m0s map[REGION:eu TEAM:ops]",
		"after-a  1h0m0s map[REGION:eu TEAM:ops]", "b UTC 1h0m0s map[REGION:eu TEAM:ops]", "c Europe/Berlin 30m0s map[TEAM:ops]",
	}, have)
	assert.Equal(t, map[string]int{"db": 1}, c.Jobs[0].Limits)
	assert.Equal(t, []string{"jobs.d/good-a.yaml", "jobs.d/good-b.yaml", "jobs.d/good-*.yaml"}, c.Include)
}

// TestIncludeIsWhereItIsWritten: files that say the same in other places have the same hash.
func TestIncludeIsWhereItIsWritten(t *testing.T) {
	t.Parallel()
	const a, b = "jobs:\n  a: {run: x}\n", "  b: {run: y, schedule: \"@daily\"}\n"
	dir := filepath.Join(t.TempDir(), "a[1]*") // which is no pattern
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	whole, err := Load(write("whole.yaml", a+b), Options{})
	require.NoError(t, err)
	write("jobs.d/b.yaml", "jobs:\n"+b)
	write("jobs.d/.b.yaml", "an editor's copy: [")
	write("jobs.d/b.yaml~", "another one: [")
	main := write("main.yaml", "include: [\"jobs.d/*.yaml\"]\n"+a)
	parts, err := Load(main, Options{})
	require.NoError(t, err)
	assert.Equal(t, whole.Hash, parts.Hash)
	assert.Equal(t, whole.JobHashes, parts.JobHashes)
	matched, err := filepath.Glob(parts.Include[0])
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "jobs.d/.b.yaml"), filepath.Join(dir, "jobs.d/b.yaml")}, matched)

	write("jobs.d/b.yaml", "jobs:\n  b: {run: z}\n")
	changed, err := Load(main, Options{})
	require.NoError(t, err)
	assert.NotEqual(t, whole.Hash, changed.Hash)

	write("jobs.d/b.yaml", "jobs: {b: {}}\n")
	_, err = Load(main, Options{})
	var report *Errors
	require.ErrorAs(t, err, &report)
	assert.Equal(t, parts.Include, report.Include, "who watches them goes on")
	assert.Equal(t, filepath.Join(dir, "jobs.d/b.yaml"), report.Problems[0].File)
}

// TestIncludeIsBounded: neither many files nor large ones nor a long way down can hold a daemon up.
func TestIncludeIsBounded(t *testing.T) {
	t.Parallel()
	files := func(path string) ([]byte, error) {
		name := filepath.Base(path)
		switch kind, rest, _ := strings.Cut(strings.TrimSuffix(name, ".yaml"), "-"); kind {
		case "empty":
			return []byte("jobs: {}\n"), nil
		case "large":
			return []byte("jobs: {}\n#" + strings.Repeat("x", maxBytes-100)), nil
		case "deep":
			return []byte("include: [deep-" + rest + "x.yaml]\n"), nil
		default:
			return nil, fs.ErrNotExist
		}
	}
	glob := func(pattern string) (names []string, err error) {
		for i := range 1000 {
			names = append(names, strings.Replace(pattern, "*", strconv.Itoa(i), 1))
		}
		return names, nil
	}
	for include, want := range map[string]string{
		"empty-*.yaml": "more than 200 files are included  [too-large]",
		"large-*.yaml": "the included files have more than 8388608 bytes (8 MiB) together, the most that is read  [too-large]",
		"deep-.yaml":   "files include each other more than 8 deep  [include]",
	} {
		start := time.Now()
		_, err := Parse("f.yaml", []byte("include: ["+include+"]\n"), Options{ReadFile: files, Glob: glob})
		require.ErrorContains(t, err, want)
		assert.Less(t, time.Since(start), time.Minute)
	}
}

// TestIncludeOfAFolder: who names a folder hears how its files are named.
func TestIncludeOfAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "jobs.d"), 0o700))
	main := filepath.Join(dir, "main.yaml")
	require.NoError(t, os.WriteFile(main, []byte("include: [jobs.d]\njobs: {}\n"), 0o600))
	_, err := Load(main, Options{})
	folder := filepath.Join(dir, "jobs.d")
	require.ErrorContains(t, err, fmt.Sprintf(`:1:11: %q is a folder; write %q for the files in it  [file]`, folder, filepath.Join(folder, "*.yaml")))
}
