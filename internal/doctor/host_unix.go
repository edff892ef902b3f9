//go:build unix

package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("asking for the room in %s: %w", dir, err)
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil //nolint:gosec,unconvert // neither is negative; the types differ by platform
}

func openFiles() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("asking for the limit of open files: %w", err)
	}
	return uint64(limit.Cur), nil //nolint:unconvert // the type differs by platform
}

// writable asks as the user that this process acts as: nil is that it may read and write.
func writable(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK, unix.AT_EACCESS) //nolint:wrapcheck // the caller names the path
}
