package daemon

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// waitFor waits until a change of the file has done what it should.
func (f *onFile) waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 20*time.Millisecond, what)
}

func TestReloadWhenTheFileChanges(t *testing.T) {
	t.Parallel()
	f := bootOnFile(t, dbtest.SQLiteURL(t), "jobs: {}\n", func(o *Options) { o.Watch = true })
	defer f.leave(t)
	defined := func(n int) func() bool { return func() bool { return len(f.actions("job.define")) == n } }

	f.write(t, "jobs: {written: {run: \"true\"}}\n")
	f.waitFor(t, "written in place", defined(1))
	assert.Equal(t, "file", f.actions("job.define")[0]["actor.id"])

	next := f.path + "~"
	require.NoError(t, os.WriteFile(next, []byte(fileHead+"jobs: {renamed: {run: \"true\"}}\n"), 0o600))
	require.NoError(t, os.Rename(next, f.path))
	f.waitFor(t, "as editors do it: a new file in the place of the old one", defined(2))

	f.write(t, "jobs: {broken: [}\n")
	f.waitFor(t, "a broken file is said", func() bool { return len(f.actions("config.reject")) == 1 })
	loads := len(f.actions("config.load"))
	f.write(t, "jobs: {renamed: {run: \"true\"}}\n")
	f.waitFor(t, "and that it is good again", func() bool { return len(f.actions("config.load")) == loads+1 })
	require.NoError(t, os.Remove(f.path))
	f.waitFor(t, "a file that is gone too", func() bool { return len(f.actions("config.reject")) == 2 })
	assert.Equal(t, "unreadable", f.actions("config.reject")[1]["reason"])
	f.write(t, "jobs: {back: {run: \"true\"}}\n")
	f.waitFor(t, "it is there again", defined(3))
	assert.Empty(t, f.actions("run.start"))
}

// Kubernetes mounts a configuration as links: cronlatch.yaml to ..data/cronlatch.yaml, ..data to a directory with a date. A
// new version is a new directory, and a rename of the link ..data.
func TestReloadWhenKubernetesSwapsTheLink(t *testing.T) {
	t.Parallel()
	mount := t.TempDir()
	version := func(name, yaml string) {
		require.NoError(t, os.Mkdir(filepath.Join(mount, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(mount, name, "cronlatch.yaml"), []byte(fileHead+yaml), 0o600))
		require.NoError(t, os.Symlink(name, filepath.Join(mount, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data")))
	}
	version("..one", "jobs: {}\n")
	path := filepath.Join(mount, "cronlatch.yaml")
	require.NoError(t, os.Symlink("..data/cronlatch.yaml", path))
	f := &onFile{path: path}
	f.served = serve(t, dbtest.SQLiteURL(t), "jobs: {}\n", func(o *Options) {
		o.Reload = func() (*configs.Config, error) { return configs.Load(path, configs.Options{}) }
		var err error
		o.Config, err = o.Reload()
		require.NoError(t, err)
		o.Watch = true
	})
	defer f.leave(t)
	for i, name := range []string{"..two", "..three"} {
		version(name, "jobs: {"+name[2:]+": {run: \"true\"}}\n")
		f.waitFor(t, name, func() bool { return len(f.actions("job.define")) == i+1 })
		require.NoError(t, os.RemoveAll(filepath.Join(mount, map[int]string{0: "..one", 1: "..two"}[i])))
	}
	f.waitFor(t, "what is new is said before what is gone", func() bool { return len(f.actions("job.remove")) == 1 })
}

// What else happens in the directory is nobody's business: a database there is written all the time.
func TestTheWatcherLooksAtNothingElse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cronlatch.yaml")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	w, err := newWatcher(path, zap.NewNop())
	require.NoError(t, err)
	defer func() { require.NoError(t, w.events.Close()) }()
	for _, op := range []fsnotify.Op{fsnotify.Create, fsnotify.Write, fsnotify.Remove, fsnotify.Rename, fsnotify.Chmod} {
		assert.False(t, w.concerns(fsnotify.Event{Name: path + "-journal", Op: op}), op)
		assert.Equal(t, op != fsnotify.Chmod, w.concerns(fsnotify.Event{Name: path, Op: op}), op)
	}
	require.NoError(t, os.Remove(path))
	assert.True(t, w.concerns(fsnotify.Event{Name: path + "-journal", Op: fsnotify.Create}), "what is behind the path is another file now")
}

// Writes that follow each other are one change; one that never ends is looked at in between.
func TestChangesSettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, errs := make(chan fsnotify.Event), make(chan error)
		w := &watcher{events: &fsnotify.Watcher{Events: events, Errors: errs}, path: "/none/cronlatch.yaml", log: zap.NewNop()}
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var calls []time.Duration
		var wg sync.WaitGroup
		wg.Go(func() { w.run(ctx, func() []string { calls = append(calls, time.Since(start)); return nil }) })
		write := func(n int) {
			for range n {
				events <- fsnotify.Event{Name: w.path, Op: fsnotify.Write}
				time.Sleep(100 * time.Millisecond)
			}
		}
		write(3)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 200*time.Millisecond + settle}, calls)
		calls, start = nil, time.Now()
		write(25)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []time.Duration{settleMost, 2400*time.Millisecond + settle}, calls)
		calls, start = nil, time.Now()
		errs <- fsnotify.ErrEventOverflow
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []time.Duration{settle}, calls, "events were lost: it may have been one of ours")
		cancel()
		wg.Wait()
	})
}

func TestADirectoryThatCannotBeWatched(t *testing.T) {
	t.Parallel()
	watch(t.Context(), filepath.Join(t.TempDir(), "none", "cronlatch.yaml"), zap.NewNop(), func() []string { t.Error("called"); return nil })
}
