package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

func (f *onFile) writeBeside(t *testing.T, name, yaml string) {
	t.Helper()
	path := filepath.Join(filepath.Dir(f.path), name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	replace(t, path, yaml)
}

func TestReloadWhenAnIncludedFileChanges(t *testing.T) {
	t.Parallel()
	f := bootOnFile(t, dbtest.SQLiteURL(t), "include: [\"jobs.d/*.yaml\"]\n", func(o *Options) { o.Watch = true })
	defer f.leave(t)
	count := func(action string, n int) func() bool { return func() bool { return len(f.actions(action)) == n } }

	f.writeBeside(t, "jobs.d/a.yaml", "jobs: {a: {run: \"true\"}}\n")
	f.waitFor(t, "a folder that was not there", count("job.define", 1))
	f.writeBeside(t, "jobs.d/a.yaml", "jobs: {a: {run: \"false\"}}\n")
	f.waitFor(t, "written in place", count("job.define", 2))
	f.writeBeside(t, "jobs.d/b.yaml", "jobs: {b: [}\n")
	f.waitFor(t, "a new file that is broken", count("config.reject", 1))
	f.writeBeside(t, "jobs.d/b.yaml", "jobs: {b: {run: \"true\"}}\n")
	f.waitFor(t, "and mended", count("job.define", 3))
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(f.path), "jobs.d", "b.yaml")))
	f.waitFor(t, "a file that is gone", count("job.remove", 1))

	f.write(t, "include: [\"jobs.d/*.yaml\", more/later.yaml]\n")
	f.waitFor(t, "a file that is not there", count("config.reject", 2))
	f.writeBeside(t, "more/later.yaml", "include: [deeper.yaml]\n")
	f.waitFor(t, "one that names another", count("config.reject", 3))
	f.writeBeside(t, "more/deeper.yaml", "jobs: {later: {run: \"true\"}}\n")
	f.waitFor(t, "all are there", count("job.define", 4))
	assert.Len(t, f.actions("job.remove"), 1)
}

// A folder of included files can be a mount of Kubernetes, too: links to ..data, which is a link.
func TestReloadWhenKubernetesSwapsTheFolder(t *testing.T) {
	t.Parallel()
	mount := t.TempDir()
	version := func(name string) {
		require.NoError(t, os.Mkdir(filepath.Join(mount, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(mount, name, "jobs.yaml"), []byte("jobs: {"+name[2:]+": {run: \"true\"}}\n"), 0o600))
		require.NoError(t, os.Symlink(name, filepath.Join(mount, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data")))
	}
	version("..one")
	require.NoError(t, os.Symlink("..data/jobs.yaml", filepath.Join(mount, "jobs.yaml")))
	f := bootOnFile(t, dbtest.SQLiteURL(t), "include: [\""+mount+"/*.yaml\"]\n", func(o *Options) { o.Watch = true })
	defer f.leave(t)
	for i, name := range []string{"..two", "..three"} {
		version(name)
		f.waitFor(t, name, func() bool { return len(f.actions("job.define")) == i+1 })
		require.NoError(t, os.RemoveAll(filepath.Join(mount, []string{"..one", "..two"}[i])))
	}
	f.waitFor(t, "what is new is said before what is gone", func() bool { return len(f.actions("job.remove")) == 2 })
}
