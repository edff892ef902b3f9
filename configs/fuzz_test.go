package configs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse looks for panics, and for reports that point outside the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte(Sample))
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml", "testdata/lint/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		config, content, err := read("f", ".", data, fixtureOptions())
		if err == nil {
			require.NotNil(t, config)
			_ = content.lint(lintNow())
			return
		}
		var report *Errors
		if !errors.As(err, &report) {
			t.Fatalf("not a report: %v", err)
		}
		checkReport(t, data, err)
	})
}
