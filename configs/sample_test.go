package configs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestWriteSample(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	written, err := WriteSample(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "cronlatch.yaml"), filepath.Join(dir, "data", "orders.csv"), filepath.Join(dir, SchemaName)}, written)
	c, err := Load(filepath.Join(dir, SampleName), Options{})
	require.NoError(t, err)
	assert.Len(t, c.Jobs, 2)
}

func TestWriteSampleNeverOverwrites(t *testing.T) {
	t.Parallel()
	for _, name := range []string{SampleName, "data/orders.csv", SchemaName} {
		dir := t.TempDir()
		mine := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(mine), 0o755))
		require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
		_, err := WriteSample(dir)
		require.ErrorIs(t, err, fs.ErrExist)
		require.ErrorContains(t, err, mine+" is already there, and nothing was written")
		data, err := os.ReadFile(mine)
		require.NoError(t, err)
		assert.Equal(t, "mine", string(data))
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Len(t, entries, 1)
	}
	dangling := filepath.Join(t.TempDir(), SampleName)
	require.NoError(t, os.Symlink("nowhere", dangling))
	_, err := WriteSample(filepath.Dir(dangling))
	require.ErrorContains(t, err, "nothing was written")

	appeared := sampleFile{target: filepath.Join(t.TempDir(), "x"), data: []byte(Sample)}
	require.NoError(t, appeared.write())
	require.ErrorIs(t, appeared.write(), fs.ErrExist)
}

// TestSampleHeartbeat: a newcomer sees a run within a minute.
func TestSampleHeartbeat(t *testing.T) {
	t.Parallel()
	job := sampleJob(t, "heartbeat")
	now := time.Date(2026, 5, 3, 12, 0, 0, 1, time.UTC)
	assert.LessOrEqual(t, job.Schedule.Next(now).Sub(now), time.Minute)
}

func sampleJob(t *testing.T, name string) *jobs.Job {
	t.Helper()
	c, err := Parse(SampleName, []byte(Sample), Options{})
	require.NoError(t, err)
	job, err := c.Job(name)
	require.NoError(t, err)
	return job
}

// TestSampleReport runs the report as the executor does.
func TestSampleReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := WriteSample(dir)
	require.NoError(t, err)
	job := sampleJob(t, "report:monthly")
	period, ok := job.Resource.Period(time.Date(2026, 6, 1, 6, 0, 0, 0, time.UTC))
	require.True(t, ok)
	require.Equal(t, "2026-05", period)

	runReport(t, dir, job, period)
	got, err := os.ReadFile(filepath.Join(dir, "reports", "2026-05.txt"))
	require.NoError(t, err)
	assert.Equal(t, `Revenue 2026-05

west            6250.80
south           3264.00
north           3615.75
east             943.00
total          14073.55

12 orders
`, string(got))
	entries, err := os.ReadDir(filepath.Join(dir, "reports"))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no draft is left behind")

	runReport(t, dir, job, "2031-01")
	empty, err := os.ReadFile(filepath.Join(dir, "reports", "2031-01.txt"))
	require.NoError(t, err)
	assert.Contains(t, string(empty), "total              0.00\n\n0 orders\n")
}

func runReport(t *testing.T, dir string, job *jobs.Job, period string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", job.Run)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "CRONLATCH_PERIOD=" + period, "CRONLATCH_RUN_ID=7"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestShippedFiles loads every configuration that the repository ships.
func TestShippedFiles(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".git")) {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasPrefix(entry.Name(), "cronlatch") || filepath.Ext(path) != ".yaml" {
			return nil
		}
		found++
		_, err = Load(path, Options{})
		assert.NoError(t, err)
		return nil
	})
	require.NoError(t, err)
	assert.Positive(t, found)
}
