package fleet

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const module = "github.com/cronlatch/cronlatch"

// programs are the binaries that all fleets of this test process share.
type programs struct {
	dir      string // removed by the watchdog when this process has ended, like fast
	fast     string // for SQLite files: in memory where the machine allows it
	mark     string // part of the mark of every fleet of this process
	daemon   string
	recorder string
	watchdog io.Closer // never closed but by the end of this process
}

//nolint:gochecknoglobals // once per process is the point
var shared = sync.OnceValues(build)

// sharedPrograms builds the daemon and the recorder, once per test process.
func sharedPrograms(tb testing.TB) programs {
	tb.Helper()
	p, err := shared()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func build() (p programs, err error) {
	if p.dir, err = os.MkdirTemp("", "cronlatch-fleet-"); err != nil {
		return p, fmt.Errorf("making a folder for the programs: %w", err)
	}
	p.mark = filepath.Base(p.dir)
	if p.fast, err = os.MkdirTemp("/dev/shm", "cronlatch-fleet-"); err != nil {
		if p.fast, err = os.MkdirTemp("", "cronlatch-fleet-db-"); err != nil {
			return p, fmt.Errorf("making a folder for databases: %w", err)
		}
	}
	p.daemon, p.recorder = filepath.Join(p.dir, "cronlatch"), filepath.Join(p.dir, "recorder")
	if p.watchdog, err = startWatchdog(markName+"="+p.mark, p.dir, p.fast); err != nil {
		return p, err
	}
	flags := []string{"-tags", "failpoints"}
	if os.Getenv("CRONLATCH_FLEET_RACE") != "" {
		flags = append(flags, "-race")
	}
	if err := goBuild(p.daemon, module+"/cmd/cronlatch", flags...); err != nil {
		return p, err
	}
	return p, goBuild(p.recorder, module+"/internal/fleet/recorder")
}

func goBuild(output, pkg string, flags ...string) error {
	args := append(append([]string{"build"}, flags...), "-o", output, pkg)
	if out, err := exec.CommandContext(context.Background(), "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
}
