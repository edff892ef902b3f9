package pgserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeBin makes a folder with an initdb, and a postgres that says it is of the given version.
func fakeBin(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{
		"initdb": "#!/bin/sh\n", "postgres": "#!/bin/sh\necho '" + version + "'\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	}
	return dir
}

func TestMajorVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": 15,
		"postgres (PostgreSQL) 17.2":                           17,
		"postgres (PostgreSQL) 18beta1":                        18,
	} {
		got, err := majorVersion(t.Context(), fakeBin(t, text))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := majorVersion(t.Context(), fakeBin(t, "something else"))
	require.ErrorContains(t, err, `reading the version of postgres from "something else`)
	_, err = majorVersion(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "looking for the server programs")
}

// Not parallel: it changes the environment.
func TestFind(t *testing.T) {
	newer := fakeBin(t, "postgres (PostgreSQL) 99.1")
	t.Setenv("PATH", os.Getenv("PATH")+string(filepath.ListSeparator)+newer)
	got, err := Find(t.Context())
	require.NoError(t, err)
	assert.Equal(t, newer, got, "the newest one, wherever it is")

	chosen := fakeBin(t, "postgres (PostgreSQL) 14.0")
	t.Setenv(BinEnv, chosen)
	got, err = Find(t.Context())
	require.NoError(t, err)
	assert.Equal(t, chosen, got)

	t.Setenv(BinEnv, t.TempDir())
	_, err = Find(t.Context())
	require.ErrorContains(t, err, "using CRONLATCH_TEST_PGBIN")
}
