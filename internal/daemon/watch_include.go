package daemon

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/configs"
)

// companions are the files that a configuration includes, as far as there are any now.
type companions struct {
	patterns []string // absolute
	files    []string // what they match, and what is behind that when it is a symbolic link; sorted
}

func (c companions) have(name string) bool { return slices.Contains(c.files, name) }

// read lets the configuration be read, and follows what it includes from now on. When that became another set meanwhile
// (the folder of a new pattern was not watched before), it is read once more.
func (w *watcher) read(changed func() []string) {
	const most = 3 // a file that changes all the time has events to come
	for range most {
		if !w.include(changed()) || !w.lookAround() {
			return
		}
	}
}

// include sets the patterns, and reports whether they are others than before.
func (w *watcher) include(patterns []string) bool {
	absolute := make([]string, 0, len(patterns))
	for _, p := range patterns {
		if a, err := filepath.Abs(p); err == nil { // the folder is there: the configuration was read from it
			absolute = append(absolute, a)
		}
	}
	if slices.Equal(absolute, w.others.patterns) {
		return false
	}
	w.others.patterns = absolute
	return true
}

// lookAround watches the folders of what is included and reports whether it is other files than before.
func (w *watcher) lookAround() bool {
	var files []string
	for _, p := range w.others.patterns {
		for _, dir := range folders(p) {
			w.add(dir)
		}
		matches, _ := filepath.Glob(p) // a bad pattern is a problem of the configuration, which says so
		for _, file := range matches {
			files = append(files, file)
			if actual, err := filepath.EvalSymlinks(file); err == nil && actual != file {
				w.add(filepath.Dir(actual))
				files = append(files, actual)
			}
		}
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if slices.Equal(files, w.others.files) {
		return false
	}
	w.others.files = files
	return true
}

func (w *watcher) add(dir string) {
	if err := w.events.Add(dir); err != nil {
		w.log.Warn("a folder of included files cannot be watched; SIGHUP and the API still reload", zap.String("folder", dir), zap.Error(err))
	}
}

// folders are those in which files of a pattern are or may appear: its own, or the nearest one above that there is, and
// those in which others could appear that its wildcards match.
func folders(pattern string) []string {
	var list []string
	for dir := filepath.Dir(pattern); ; dir = filepath.Dir(dir) {
		found, _ := filepath.Glob(dir)
		list = append(list, found...)
		if dir == filepath.Dir(dir) || len(found) > 0 && !strings.ContainsAny(dir, `*?[`) {
			return list
		}
	}
}

// follows remembers what the configuration includes, the one that was refused, too: it is what somebody is about to mend.
func (d *Daemon) follows(next *configs.Config, err error) {
	if bad, ok := errors.AsType[*configs.Errors](err); ok && bad.Include != nil {
		d.includes = bad.Include
	} else if err == nil {
		d.includes = next.Include
	}
}

// included is what the configuration includes that was read last.
func (d *Daemon) included() []string {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	return d.includes
}
