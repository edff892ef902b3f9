package linear_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/netfault"
	"github.com/cronlatch/cronlatch/locking/httplock"
)

// daemon is a real one on one address, killed and started again.
type daemon struct {
	tb      testing.TB
	program string
	url     string // of the database
	name    string
	addr    string
	dir     string

	lives int // how often it was started: each life is a replica of its own
	cmd   *exec.Cmd
}

// buildDaemon builds the program once for all daemons of a test.
func buildDaemon(tb testing.TB) string {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "cronlatch")
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-o", program, "github.com/cronlatch/cronlatch/cmd/cronlatch")
	out, err := cmd.CombinedOutput()
	require.NoError(tb, err, string(out))
	return program
}

// newDaemon does not start it.
func newDaemon(tb testing.TB, program, url, name string) *daemon {
	tb.Helper()
	port, err := netfault.FreePort(tb.Context())
	require.NoError(tb, err)
	d := &daemon{
		tb: tb, program: program, url: url, name: name, dir: tb.TempDir(),
		addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
	}
	require.NoError(tb, os.WriteFile(filepath.Join(d.dir, "cronlatch.yaml"), []byte("version: 1\njobs: {}\n"), 0o600))
	tb.Cleanup(d.kill)
	return d
}

// replica is the name of the life that is (or was last) running.
func (d *daemon) replica() string { return fmt.Sprintf("%s-%d", d.name, d.lives) }

// start does not end the daemon with ctx: kill does.
func (d *daemon) start(ctx context.Context) {
	d.tb.Helper()
	d.lives++
	log, err := os.Create(filepath.Join(d.dir, d.replica()+".log"))
	require.NoError(d.tb, err)
	defer log.Close() //nolint:errcheck // the daemon has its own descriptor
	d.cmd = exec.CommandContext(context.WithoutCancel(ctx), d.program, "serve",
		"--config", filepath.Join(d.dir, "cronlatch.yaml"), "--replica", d.replica(), "--listen", d.addr, "--auth", "none")
	d.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir, "DATABASE_URL=" + d.url}
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = d.dir, log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is the test's
	require.NoError(d.tb, d.cmd.Start())
}

// kill ends it as kill -9 does, and returns when it is gone.
func (d *daemon) kill() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Kill() // it may have ended
	_ = d.cmd.Wait()         // how it ended is known
	d.cmd = nil
}

// ready waits until it may be given work.
func (d *daemon) ready(ctx context.Context) error {
	err := eventually(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.addr+"/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(req)
		if err != nil {
			return false, err
		}
		return res.StatusCode == http.StatusOK, res.Body.Close()
	})
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(d.dir, d.replica()+".log")) // what there is of it
		return fmt.Errorf("replica %s is not ready: %w\n%s", d.replica(), err, log)
	}
	return nil
}

func (d *daemon) client() *httplock.Client {
	d.tb.Helper()
	c, err := httplock.New(httplock.Options{URL: "http://" + d.addr})
	require.NoError(d.tb, err)
	d.tb.Cleanup(c.Close)
	return c
}
