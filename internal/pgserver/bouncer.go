package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cronlatch/cronlatch/internal/netfault"
)

// BouncerEnv names the environment variable with the program pgbouncer, for installations in unusual places.
const BouncerEnv = "CRONLATCH_TEST_PGBOUNCER"

// ErrNoBouncer says that pgbouncer is not installed where FindBouncer looks.
var ErrNoBouncer = errors.New("pgserver: no program pgbouncer found; make test installs it on Debian and Ubuntu, " +
	"elsewhere install pgbouncer or set " + BouncerEnv + " to it")

// FindBouncer returns the program pgbouncer: the one named by CRONLATCH_TEST_PGBOUNCER, else the first one in PATH and the
// usual places (Debian keeps it among the administrator's programs). Without one the error is ErrNoBouncer.
func FindBouncer() (string, error) {
	if path := os.Getenv(BouncerEnv); path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("using %s: %w", BouncerEnv, err)
		}
		return found, nil
	}
	for _, path := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer", "/opt/local/bin/pgbouncer"} {
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	return "", ErrNoBouncer
}

// Bouncer is pgbouncer in transaction mode in front of a Server, for all of its databases and the superuser. Its
// methods may be called from any goroutine.
type Bouncer struct {
	server   *Server
	folder   folder
	program  string
	port     int
	watchdog *watchdog

	mu      sync.Mutex
	process *postmaster // nil while it is down
}

// StartBouncer runs pgbouncer in front of a server for a test, stopped and removed when the test ends.
func StartBouncer(tb testing.TB, s *Server) *Bouncer {
	tb.Helper()
	b, err := launchBouncer(tb.Context(), s)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.remove(context.WithoutCancel(tb.Context())); err != nil {
			tb.Errorf("removing pgbouncer: %v", err)
		}
	})
	return b
}

// Pooled starts pgbouncer in front of the server, calls f with it, and removes it again.
func (s *Server) Pooled(ctx context.Context, f func(b *Bouncer) error) (err error) {
	b, err := launchBouncer(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.remove(context.WithoutCancel(ctx))) }()
	return f(b)
}

func launchBouncer(ctx context.Context, s *Server) (b *Bouncer, err error) {
	program, err := FindBouncer()
	if err != nil {
		return nil, err
	}
	f, err := makeFolder(filepath.Dir(program))
	if err != nil {
		return nil, err
	}
	b = &Bouncer{server: s, folder: f, program: program}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.remove(context.WithoutCancel(ctx)))
		}
	}()
	if b.watchdog, err = startWatchdog(ctx, f.root, b.pidFile()); err != nil {
		return nil, err
	}
	return b, b.firstStart(ctx)
}

// firstStart looks for a port by trying, as the server's does.
func (b *Bouncer) firstStart(ctx context.Context) error {
	const attempts = 5
	var err error
	for range attempts {
		if b.port, err = netfault.FreePort(ctx); err != nil {
			return err
		}
		if err = b.configure(); err != nil {
			return err
		}
		if b.process, err = b.start(ctx); err == nil {
			return nil
		}
		if !strings.Contains(b.Log(), "Address already in use") {
			break
		}
	}
	return fmt.Errorf("%w\n%s", err, b.Log())
}

func (b *Bouncer) settingsFile() string { return filepath.Join(b.folder.root, "pgbouncer.ini") }
func (b *Bouncer) usersFile() string    { return filepath.Join(b.folder.root, "users.txt") }
func (b *Bouncer) pidFile() string      { return filepath.Join(b.folder.root, "pgbouncer.pid") }

// configure writes pgbouncer's files. A server connection is shared as soon as its transaction ends, the one used last
// first; there are enough of them for tests in which transactions wait for each other. A server that was away is tried
// again at once, where an installation waits for 15 seconds.
func (b *Bouncer) configure() error {
	settings := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pidfile = %s
pool_mode = transaction
default_pool_size = 40
max_client_conn = 2000
server_login_retry = 0.1
`, b.server.port, b.port, b.usersFile(), b.pidFile())
	for path, content := range map[string]string{b.settingsFile(): settings, b.usersFile(): `"postgres" ""` + "\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing pgbouncer's settings: %w", err)
		}
	}
	return b.folder.as.own(b.folder.root)
}

func (b *Bouncer) start(ctx context.Context) (*postmaster, error) {
	if err := os.Remove(b.folder.log()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("starting a new log: %w", err)
	}
	p, err := b.folder.spawn(ctx, b.program, b.settingsFile())
	if err != nil {
		return nil, err
	}
	if err := p.ready(ctx, func() bool { return strings.Contains(b.Log(), "process up:") }); err != nil {
		return nil, err
	}
	return p, nil
}

// URL is the address of the database postgres behind the pooler, for the superuser.
func (b *Bouncer) URL() string { return b.On("postgres") }

// On is the URL of another database.
func (b *Bouncer) On(database string) string { return urlOf(b.Addr(), database) }

// Addr is the TCP address.
func (b *Bouncer) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// Log returns what pgbouncer has logged since its last start.
func (b *Bouncer) Log() string {
	content, err := os.ReadFile(b.folder.log())
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// Kill ends pgbouncer without a goodbye. It keeps nothing that a softer end would save.
func (b *Bouncer) Kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kill(context.Background())
}

func (b *Bouncer) kill(ctx context.Context) {
	if b.process != nil {
		b.process.kill(ctx)
		b.process = nil
	}
}

// Restart starts pgbouncer on the same port, after a Kill if it is up.
func (b *Bouncer) Restart(ctx context.Context) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kill(ctx)
	// The old one did not take its file with it, and a new one refuses to start beside it.
	if err := os.Remove(b.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the old process number: %w", err)
	}
	b.process, err = b.start(ctx)
	return err
}

func (b *Bouncer) remove(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kill(ctx)
	err := os.RemoveAll(b.folder.root)
	if b.watchdog != nil {
		err = errors.Join(err, b.watchdog.release())
	}
	return err
}
