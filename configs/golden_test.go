package configs

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//nolint:gochecknoglobals // flags of a test binary are global
var update = flag.Bool("update", false, "write the expected reports of testdata/bad anew")

// canary is what a variable holds in every test; no report may show it.
const canary = "hunter2-canary"

// fixtureOptions is the world of the fixtures: three variables, a few files, and those of testdata/jobs.d.
func fixtureOptions() Options {
	env := map[string]string{"SECRET": canary, "PORT": "8080", "WORD": "eighty"}
	return Options{
		Getenv: func(name string) string { return env[name] },
		Glob: func(pattern string) ([]string, error) {
			if filepath.Dir(pattern) != "jobs.d" {
				return nil, nil
			}
			paths, err := filepath.Glob(filepath.Join("testdata", pattern))
			for i, path := range paths {
				paths[i] = strings.TrimPrefix(path, "testdata/")
			}
			return paths, err //nolint:wrapcheck // as the function that it stands for
		},
		ReadFile: func(path string) ([]byte, error) {
			if filepath.Dir(path) == "jobs.d" {
				return os.ReadFile(filepath.Join("testdata", path)) //nolint:wrapcheck // as above
			}
			switch filepath.Base(path) {
			case "pg":
				return []byte(canary + "\n"), nil
			case "pg-url":
				return []byte("https://hooks.example.com/" + canary + "\n"), nil
			case "holidays.ics":
				return []byte("BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261224\r\nDTEND;VALUE=DATE:20261227\r\nRRULE:FREQ=YEARLY\r\nSUMMARY:Christmas\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"), nil
			case "times.ics":
				return []byte("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261224T100000Z\nEND:VEVENT\nEND:VCALENDAR\n"), nil
			case "eighty.sql":
				return []byte("\ufeffCREATE TABLE IF NOT EXISTS t (a text);\nINSERT INTO t VALUES ({{ .Resource }});\n"), nil
			case "bad.sql":
				return []byte("UPDATE t SET a = 1;\n\n  COMMIT;\n"), nil
			case "binary":
				return []byte("a\x00b"), nil
			case "big":
				return []byte(strings.Repeat("x", maxValueFile+1)), nil
			case "denied":
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
			default:
				return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
		},
	}
}

func fixtures(t *testing.T, folder string, atLeast int) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), atLeast)
	files := map[string][]byte{}
	for _, path := range paths {
		files[path], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	return files
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	for path, data := range fixtures(t, "bad", 50) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			config, err := Parse(filepath.Base(path), data, fixtureOptions())
			require.Error(t, err)
			assert.Nil(t, config)
			golden := strings.TrimSuffix(path, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644))
			}
			want, readErr := os.ReadFile(golden)
			require.NoError(t, readErr)
			assert.Equal(t, string(want), err.Error()+"\n")
			checkReport(t, data, err)
			assert.NotContains(t, err.Error(), canary)
		})
	}
}

// checkReport holds for every report, whatever the file.
func checkReport(t *testing.T, data []byte, err error) {
	t.Helper()
	var report *Errors
	require.ErrorAs(t, err, &report)
	require.NotEmpty(t, report.Problems)
	assert.LessOrEqual(t, len(report.Problems), maxProblems)
	lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	previous := Problem{}
	for _, p := range report.Problems {
		assert.NotEmpty(t, p.Message)
		assert.NotEmpty(t, p.Code)
		assert.NotContains(t, p.Message, "\n")
		if p.Line == 0 || filepath.Dir(p.File) == "jobs.d" {
			continue
		}
		require.LessOrEqual(t, p.Line, len(lines), p)
		assert.LessOrEqual(t, p.Column, len([]rune(lines[p.Line-1]))+1, p)
		assert.GreaterOrEqual(t, p.Column, 1, p)
		assert.GreaterOrEqual(t, p.Length, 1, p)
		assert.False(t, p.Line < previous.Line || p.Line == previous.Line && p.Column < previous.Column, "sorted: %v", p)
		previous = p
	}
}

// TestEveryCodeIsShown keeps the list of codes and the fixtures together.
func TestEveryCodeIsShown(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{}
	for _, code := range []string{
		codeAlias, codeChoice, codeConflict, codeDatabase, codeDocuments, codeDuplicateKey, codeDuration, codeEmpty, codeEncoding, codeEnv,
		codeFile, codeHost, codeHTTP, codeInclude, codeJobName, codeLabel, codeListen, codeRange, codeRequired, codeResource, codeOffset, codeSQL, codeSyntax, codeTemplate,
		codeTooLarge, codeType, codeUnknownKey, codeVariable, codeVersion, "schedule", "schedule-never",
		"timezone",
		codeChannel, codeParam, codeURL, codeUser, "calendar", "window", "after", "after-cycle", "after-never",
	} {
		missing[code] = true
	}
	for path, data := range fixtures(t, "bad", 50) {
		_, err := Parse(filepath.Base(path), data, fixtureOptions())
		var report *Errors
		require.ErrorAs(t, err, &report)
		for _, p := range report.Problems {
			delete(missing, p.Code)
		}
	}
	assert.Empty(t, maps.Collect(maps.All(missing)))
}

func TestGoodFiles(t *testing.T) {
	t.Parallel()
	for path, data := range fixtures(t, "good", 5) {
		_, err := Parse(filepath.Base(path), data, fixtureOptions())
		assert.NoError(t, err, path)
	}
}
