//go:build unix

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socketMode lets nobody in but the daemon's own user: on a Unix socket there may be no other authentication.
const socketMode = 0o600

// maxSocketPath leaves room for the zero byte at the end.
const maxSocketPath = len(unix.RawSockaddrUnix{}.Path) - 1

// listenUnix opens a socket at path. One that a dead process left behind is replaced; one that is served is not. The file
// goes away with the listener.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path has %d bytes, and that of a socket has %d at most", len(path), maxSocketPath)
	}
	unlock, err := lockDir(ctx, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// Before it is bound: on Linux the file then never has another mode, on other systems this does nothing.
		return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), socketMode) })
	}}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped by listen
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, closeWith(l, err)
	}
	return l, nil
}

// lockDir keeps two daemons from taking the same stale socket for theirs, one of which would remove the other's. The
// folder itself is what is locked, so that no lock file is left behind.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the folder
	}
	const patience, pause = 5 * time.Second, 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = d.Close() }, nil // which unlocks
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), d.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, ctx.Err()), d.Close())
		case <-time.After(pause):
		}
	}
}

var (
	errSocketServed = errors.New("another process serves this socket")
	errNotSocket    = errors.New("there is something else at this path, and it is not removed")
)

// removeStale removes a socket on which nobody listens.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err //nolint:wrapcheck // it names the file
	case info.Mode().Type() != fs.ModeSocket:
		return errNotSocket
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(errSocketServed, conn.Close())
	case errors.Is(err, unix.ECONNREFUSED):
		return os.Remove(path) //nolint:wrapcheck // it names the file
	case errors.Is(err, fs.ErrNotExist):
		return nil // it went away by itself
	default: // EAGAIN: its queue is full; EACCES: it is another user's
		return errors.Join(errSocketServed, err)
	}
}
