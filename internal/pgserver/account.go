package pgserver

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is whom the server programs run as. The zero value is the caller itself.
type account struct{ credential *syscall.Credential }

// serverAccount is the zero account except for root, which PostgreSQL refuses.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return account{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return account{}, errors.New("choosing a user for the server: PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

// attributes puts a program into a session of its own, out of reach of the terminal's Ctrl-C.
func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: a.credential}
}

// own gives everything below dir to the account.
func (a account) own(dir string) error {
	if a.credential == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(a.credential.Uid), int(a.credential.Gid))
	})
}

// tempDir is the folder for the server's files: the usual temporary one, unless the account cannot pass through it.
func (a account) tempDir() string {
	dir := os.TempDir()
	if a.credential == nil {
		return dir
	}
	for p := filepath.Clean(dir); ; p = filepath.Dir(p) {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm()&0o001 == 0 {
			return "/tmp"
		}
		if p == filepath.Dir(p) {
			return dir
		}
	}
}
