package configs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lintNow is when the fixtures are looked at, a Monday.
func lintNow() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

// lintFile checks a file of testdata/lint under its own name.
func lintFile(t *testing.T, path string, data []byte) *Errors {
	t.Helper()
	o := fixtureOptions()
	o.Unprivileged = true
	inner := o.ReadFile
	o.ReadFile = func(name string) ([]byte, error) {
		if name == filepath.Base(path) {
			return data, nil
		}
		return inner(name)
	}
	config, warnings, err := Check(filepath.Base(path), o, lintNow())
	require.NoError(t, err, path)
	require.NotNil(t, config)
	return warnings
}

func TestLints(t *testing.T) {
	t.Parallel()
	for path, data := range fixtures(t, "lint", 8) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			have := ""
			if warnings := lintFile(t, path, data); warnings != nil {
				have = warnings.Error() + "\n"
				for _, p := range warnings.Problems {
					assert.True(t, p.Warning)
					assert.NotContains(t, p.Snippet, "fine:", "what is fine has no warning")
				}
			}
			golden := strings.TrimSuffix(path, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(have), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), have)
		})
	}
}

// TestWhatIsShippedHasNoWarnings: the sample shows how it is done.
func TestWhatIsShippedHasNoWarnings(t *testing.T) {
	t.Parallel()
	assert.Nil(t, lintFile(t, SampleName, []byte(Sample)))
}

func TestWarningsInOtherForms(t *testing.T) {
	t.Parallel()
	warnings := lintFile(t, "f.yaml", []byte("jobs:\n  a: {run: x, schedule: \"*/7 * * * *\"}\n"))
	require.NotNil(t, warnings)
	var text bytes.Buffer
	require.NoError(t, warnings.WriteJSON(&text))
	assert.Contains(t, text.String(), `"code": "uneven-step",
    "warning": true,`)
	text.Reset()
	require.NoError(t, warnings.WriteGitHub(&text))
	assert.Contains(t, text.String(), "::warning file=f.yaml,line=2,col=26,endColumn=29,title=uneven-step::not every 7 minutes")
}
