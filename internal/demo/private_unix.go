//go:build unix

package demo

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private refuses what others could have put there or could change: links, other owners, files that others may write.
func private(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	const others = 0o022
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link, which somebody else may have made; remove it", path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", path)
	case info.Mode().Perm()&others != 0:
		return fmt.Errorf("others can write to %s; chmod go-w it", path)
	default:
		return nil
	}
}

// polite asks a process to end.
func polite(p *os.Process) error {
	return p.Signal(syscall.SIGTERM) //nolint:wrapcheck // that it is gone is no error of the caller's
}

// there reports whether a process exists.
func there(pid int) bool { return syscall.Kill(pid, 0) == nil }
