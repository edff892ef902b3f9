package importer

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/configs"
)

//nolint:gochecknoglobals // flags of a test binary are global
var update = flag.Bool("update", false, "write the expected texts of testdata anew")

// testdata reads a file under its name on a real host.
func testdata(tb testing.TB, folder, name string) Source {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", folder, name))
	require.NoError(tb, err)
	return Source{Name: name, Data: data}
}

// loaded is the configuration that a result says; every result of every test loads.
func loaded(tb testing.TB, r Result) *configs.Config {
	tb.Helper()
	config, err := configs.Parse("cronlatch.yaml", []byte(r.YAML), configs.Options{})
	require.NoError(tb, err, r.YAML)
	require.Len(tb, config.Jobs, r.Jobs)
	return config
}

func golden(t *testing.T, name string, r Result) {
	t.Helper()
	var problems strings.Builder
	for _, p := range r.Problems {
		problems.WriteString(p.String() + "\n")
	}
	for file, got := range map[string]string{name + ".yaml": r.YAML, name + ".problems": problems.String()} {
		path := filepath.Join("testdata", "want", file)
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, path)
	}
}

func TestCrontabsOfRealHosts(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]string{
		"debian":  {"etc/crontab"},
		"cron.d":  {"etc/cron.d/php", "etc/cron.d/raid-check"},
		"user":    {"user"},
		"at-once": {"etc/crontab", "etc/cron.d/php", "user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sources []Source
			for _, file := range files {
				sources = append(sources, testdata(t, "crontab", file))
			}
			result := Crontabs(sources, CrontabOptions{Timezone: "Europe/Berlin"})
			loaded(t, result)
			golden(t, name, result)
		})
	}
}

func TestManifests(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"backup", "release", "list"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := CronJobs([]Source{testdata(t, "cronjob", name+".yaml")})
			loaded(t, result)
			golden(t, name, result)
		})
	}
}

// Other readers of YAML take some words for booleans, and digits for numbers.
func TestKeysAreText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a-b_1": "a-b_1", "yes": `"yes"`, "Off": `"Off"`, "null": `"null"`, "7": `"7"`, "a:b": `"a:b"`} {
		assert.Equal(t, want, quoteKey(text), text)
	}
}
