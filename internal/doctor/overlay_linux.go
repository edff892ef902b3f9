package doctor

import "golang.org/x/sys/unix"

// onOverlay reports whether a folder is in a container's own layer.
func onOverlay(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC
}
