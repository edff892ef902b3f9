package database

import "golang.org/x/sys/unix"

// networkFileSystem names the network file system that dir is on, "" when it is on none that is known. FUSE counts as
// one: what is behind it (sshfs, s3fs...) cannot be told, and its locks as a rule do not reach other machines.
func networkFileSystem(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", err
	}
	return networkMagic(uint32(st.Type)), nil
}

func networkMagic(magic uint32) string {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case 0xff534d42:
		return "CIFS"
	case unix.SMB_SUPER_MAGIC:
		return "SMB"
	case unix.SMB2_SUPER_MAGIC:
		return "SMB2"
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph"
	case unix.CODA_SUPER_MAGIC:
		return "Coda"
	case unix.NCP_SUPER_MAGIC:
		return "NCP"
	default:
		return ""
	}
}
