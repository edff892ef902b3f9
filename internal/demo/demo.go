package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Options are what a demo needs; the fields are required unless said otherwise.
type Options struct {
	Executable string   // this program, whose serve is a replica
	Environ    []string // of the replicas
	Version    string
	Dir        string // an empty folder, or one to be made; "" is one that is removed at the end
	Keep       bool   // the folder is not removed
	ListenBase int    // the port of replica a; b and c have the next ones. A port that is taken is replaced by a free one
	Seed       uint64 // of the history
	Restart    time.Duration
	Say        func(format string, args ...any) // one line
	Hurry      <-chan struct{}                  // closed: end now; may be nil
}

func replicaNames() []string { return []string{"a", "b", "c"} }

// firstReplica starts before the others, so that it is the one that holds a lock to begin with.
const firstReplica = "b"

// Run is a demo from beginning to end: until ctx ends.
func Run(ctx context.Context, o Options) (err error) {
	// The replicas end with the thread that starts them: see apart.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, dir, err := o.folders()
	if err != nil {
		return err
	}
	defer func() {
		if o.Keep || o.Dir != "" {
			o.Say("kept: %s", dir)
		}
		if own != dir || !o.Keep {
			err = errors.Join(err, os.RemoveAll(own))
		}
	}()
	if err = o.prepare(ctx, dir); err != nil {
		return err
	}
	socket := filepath.Join(own, socketName)
	control, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("opening the demo's socket: %w", err)
	}
	defer func() { _ = control.Close() }()
	mine := state{os.Getpid(), dir, socket}
	for _, where := range []string{dir, stateDir()} {
		if err = writeState(where, mine); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removeState(where, mine)) }()
	}
	return newFleet(&o, dir).run(ctx, control)
}

// folders are one of our own, for the socket, and the one for everything that may be kept.
func (o *Options) folders() (own, dir string, err error) {
	if o.Dir != "" {
		if dir, err = emptyDir(o.Dir); err != nil {
			return "", "", err
		}
	}
	if own, err = os.MkdirTemp("", "cronlatch-demo-"); err != nil {
		return "", "", fmt.Errorf("making the demo's folder: %w", err)
	}
	if dir == "" {
		dir = own
	}
	return own, dir, nil
}

func emptyDir(path string) (string, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", path, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the demo's folder: %w", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("reading the demo's folder: %w", err)
	}
	if len(files) > 0 {
		return "", fmt.Errorf("%s is not empty, and a demo begins with nothing; name another folder with --dir", dir)
	}
	return dir, private(dir)
}

// prepare writes the configuration and the history.
func (o *Options) prepare(ctx context.Context, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, configName), []byte(configText), 0o600); err != nil {
		return fmt.Errorf("writing the demo's configuration: %w", err)
	}
	o.Say("making 30 days of history in %s", dir)
	if err := o.seed(ctx, filepath.Join(dir, databaseName)); err != nil {
		return fmt.Errorf("making the demo's history: %w", err)
	}
	return nil
}
