package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

const (
	// settle is how long a file must have been left alone before it is read: editors and copies write in several steps.
	settle = 250 * time.Millisecond
	// settleMost bounds that for a file that is written all the time.
	settleMost = 2 * time.Second
)

// watcher sees when the configuration becomes another one. It watches directories and not the file: an editor renames a
// new file over the old one, and Kubernetes swaps a symbolic link to a directory, after which a watch on the file would be
// one on what was deleted.
type watcher struct {
	events *fsnotify.Watcher
	path   string // as it was given
	real   string // the file behind all symbolic links; "" when there is none
	others companions
	log    *zap.Logger
}

// watch follows the file until ctx ends and calls changed after each change; it answers with the patterns of what the file
// includes, which are followed, too. Without it only the other ways to reload are
// left: that is said, and ends nothing.
func watch(ctx context.Context, path string, log *zap.Logger, changed func() []string) {
	w, err := newWatcher(path, log)
	if err != nil {
		log.Warn("the configuration's directory cannot be watched; SIGHUP and the API still reload", zap.Error(err))
		return
	}
	w.run(ctx, changed)
	_ = w.events.Close() // nothing is read from it any more
}

func newWatcher(path string, log *zap.Logger) (*watcher, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped by the log line
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped by the log line
	}
	w := &watcher{events: events, path: absolute, log: log}
	if err := events.Add(filepath.Dir(absolute)); err != nil {
		return nil, errors.Join(err, events.Close())
	}
	w.follow()
	return w, nil
}

// follow finds the file behind the symbolic links and watches its directory, too. It reports whether it is another one.
func (w *watcher) follow() (moved bool) {
	now, err := filepath.EvalSymlinks(w.path)
	if err != nil {
		now = "" // it is gone for now
	}
	if now == w.real {
		return false
	}
	own := filepath.Dir(w.path)
	if before := filepath.Dir(w.real); w.real != "" && before != own {
		_ = w.events.Remove(before) // it may have been deleted, which ended the watch
		_ = w.events.Add(own)       // two paths to one directory share a watch
	}
	w.real = now
	if dir := filepath.Dir(now); now != "" && dir != own {
		if err := w.events.Add(dir); err != nil {
			w.log.Warn("the directory behind the configuration's symbolic link cannot be watched", zap.Error(err))
		}
	}
	return true
}

// run calls changed when the file was left alone after a change. The first call comes at once: what changed between the
// reading of the file and the first look at the directory was seen by nobody.
func (w *watcher) run(ctx context.Context, changed func() []string) {
	w.read(changed)
	quiet := time.NewTimer(0)
	quiet.Stop()
	defer quiet.Stop()
	var since time.Time // of the first change that was not told yet
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.events.Events:
			if !ok {
				return
			}
			if !w.concerns(e) {
				continue
			}
			if since.IsZero() {
				since = time.Now()
			}
			quiet.Reset(min(settle, max(0, settleMost-time.Since(since))))
		case err, ok := <-w.events.Errors:
			if !ok {
				return
			}
			w.log.Warn("watching the configuration: events were lost; it is read again", zap.Error(err))
			quiet.Reset(settle)
		case <-quiet.C:
			since = time.Time{}
			w.follow()
			w.lookAround() // events may have been lost
			w.read(changed)
		}
	}
}

// concerns reports whether an event is about the configuration. The directory may hold more, even a database that is written
// all the time: only what can be the file, or can move a link to it, is looked at.
func (w *watcher) concerns(e fsnotify.Event) bool {
	if e.Name == w.path || e.Name == w.real || w.others.have(e.Name) {
		return e.Op != fsnotify.Chmod
	}
	if e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		moved := w.follow()
		return w.lookAround() || moved
	}
	return false
}
