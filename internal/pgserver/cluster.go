package pgserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// templateEnv names a folder with a data directory fresh from initdb. withpg sets it: a copy takes a quarter of the time
// that initdb takes.
const templateEnv = "CRONLATCH_TEST_PGTEMPLATE"

// folder is where one server keeps everything: data/, log and the unix socket.
type folder struct {
	root string
	bin  string
	as   account
}

func (f folder) data() string    { return filepath.Join(f.root, "data") }
func (f folder) log() string     { return filepath.Join(f.root, "log") }
func (f folder) pidFile() string { return filepath.Join(f.data(), "postmaster.pid") }

// newFolder makes the folder itself, with a short name: the path of a unix socket has room for 103 bytes on macOS.
func newFolder(ctx context.Context) (folder, error) {
	bin, err := Find(ctx)
	if err != nil {
		return folder{}, err
	}
	return makeFolder(bin)
}

func makeFolder(bin string) (folder, error) {
	as, err := serverAccount()
	if err != nil {
		return folder{}, err
	}
	root, err := os.MkdirTemp(as.tempDir(), "cronlatch-pg-")
	if err != nil {
		return folder{}, fmt.Errorf("making the server's folder: %w", err)
	}
	f := folder{root: root, bin: bin, as: as}
	return f, as.own(root)
}

// create fills the data directory, from the template if there is one.
func (f folder) create(ctx context.Context, template string) error {
	if template == "" {
		return f.initdb(ctx, f.data())
	}
	if err := os.CopyFS(f.data(), os.DirFS(template)); err != nil {
		return fmt.Errorf("copying the template of a data directory: %w", err)
	}
	if err := os.Chmod(f.data(), 0o700); err != nil {
		return fmt.Errorf("closing the data directory to others: %w", err)
	}
	return f.as.own(f.data())
}

func (f folder) initdb(ctx context.Context, data string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(f.bin, "initdb"), "--pgdata="+data, "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	f.prepare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running initdb: %w\n%s", err, out)
	}
	return nil
}

// prepare makes a server program run as the right user, in the server's folder, without the caller's PG* variables.
func (f folder) prepare(cmd *exec.Cmd) {
	cmd.Dir = f.root
	cmd.Env = []string{"PATH=" + f.bin + ":/usr/bin:/bin", "HOME=" + f.root, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = f.as.attributes()
}

// configure writes the whole postgresql.conf anew, which leaves what ALTER SYSTEM has set.
func (f folder) configure(settings map[string]string) error {
	path := filepath.Join(f.data(), "postgresql.conf")
	if err := os.WriteFile(path, []byte(render(settings)), 0o600); err != nil {
		return fmt.Errorf("writing the server's settings: %w", err)
	}
	return f.as.own(path)
}
