package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cronlatch/cronlatch/internal/netfault"
)

// Mode says how a server is asked to stop.
type Mode string

// PostgreSQL's three ways to shut down.
const (
	Smart     Mode = "smart"     // waits until every client has left
	Fast      Mode = "fast"      // disconnects the clients, finishes cleanly
	Immediate Mode = "immediate" // as after a crash: recovers at the next start
)

func (m Mode) signal() os.Signal {
	switch m {
	case Smart:
		return syscall.SIGTERM
	case Immediate:
		return syscall.SIGQUIT
	case Fast:
	}
	return syscall.SIGINT
}

const stopTimeout = time.Minute

// Server is a private PostgreSQL server. Its methods may be called from any goroutine.
type Server struct {
	folder   folder
	port     int
	watchdog *watchdog
	report   func(format string, args ...any) // what Stop, Kill and Restart do with an error

	mu      sync.Mutex
	process *postmaster // nil while the server is down
}

// Start runs a server of its own for a test, stopped and removed when the test ends. Tests that only need a database
// use package dbtest, which is many times as fast.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s, err := launch(tb.Context(), os.Getenv(templateEnv), opts)
	if err != nil {
		tb.Fatal(err)
	}
	s.report = tb.Errorf
	tb.Cleanup(func() {
		if err := s.remove(context.WithoutCancel(tb.Context())); err != nil {
			tb.Errorf("removing the PostgreSQL server: %v", err)
		}
	})
	return s
}

// Run starts a server, calls f with it, and removes the server again.
func Run(ctx context.Context, f func(s *Server) error, opts ...Option) (err error) {
	s, err := launch(ctx, "", opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove(context.WithoutCancel(ctx))) }()
	return f(s)
}

func launch(ctx context.Context, template string, opts []Option) (s *Server, err error) {
	f, err := newFolder(ctx)
	if err != nil {
		return nil, err
	}
	s = &Server{folder: f, report: func(string, ...any) {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.remove(context.WithoutCancel(ctx)))
		}
	}()
	if s.watchdog, err = startWatchdog(ctx, f.root, f.pidFile()); err != nil {
		return nil, err
	}
	if err := f.create(ctx, template); err != nil {
		return nil, err
	}
	return s, s.firstStart(ctx, opts)
}

// firstStart looks for a port by trying: between the look and the start somebody else may take a free one.
func (s *Server) firstStart(ctx context.Context, opts []Option) error {
	settings := defaults()
	settings["unix_socket_directories"] = s.folder.root
	for _, o := range opts {
		o(settings)
	}
	const attempts = 5
	var err error
	for range attempts {
		if s.port, err = netfault.FreePort(ctx); err != nil {
			return err
		}
		settings["port"] = strconv.Itoa(s.port)
		if err = s.folder.configure(settings); err != nil {
			return err
		}
		if s.process, err = s.folder.start(ctx); err == nil {
			return nil
		}
		if !strings.Contains(s.Log(), "could not bind") {
			break
		}
	}
	return fmt.Errorf("%w\n%s", err, s.Log())
}

// URL is the address of the database postgres, for the superuser, over TCP.
func (s *Server) URL() string { return s.On("postgres") }

// On is the URL of another database.
func (s *Server) On(database string) string { return urlOf(s.Addr(), database) }

func urlOf(addr, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Host: addr, Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Addr is the TCP address, for a proxy in front of the server.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// SocketDir is the folder of the unix socket, as PGHOST takes it; the port is that of Addr.
func (s *Server) SocketDir() string { return s.folder.root }

// DataDir is the data directory, for tests that change pg_hba.conf before Restart.
func (s *Server) DataDir() string { return s.folder.data() }

// Log returns everything the server has logged, one entry a line: time, process, SQLSTATE, message.
func (s *Server) Log() string {
	content, err := os.ReadFile(s.folder.log())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.report("reading the PostgreSQL server's log: %v", err)
	}
	return string(content)
}

// Stop shuts the server down and returns when it is gone. It does nothing when the server is down.
func (s *Server) Stop(mode Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(mode); err != nil {
		s.report("%v", err)
	}
}

func (s *Server) stop(mode Mode) error {
	if s.process == nil {
		return nil
	}
	err := s.process.stop(mode.signal(), stopTimeout)
	if err == nil {
		s.process = nil
	}
	return err
}

// Kill sends SIGKILL to the server and to all its children.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.kill(context.Background())
		s.process = nil
	}
}

// Restart starts the server on the same port and data, after a fast stop if it is up, and returns when it accepts
// connections.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.stop(Fast)
	if err == nil {
		s.process, err = s.startAgain(context.Background())
	}
	if err != nil {
		s.report("restarting the PostgreSQL server: %v\n%s", err, s.Log())
	}
}

// startAgain tries until the killed processes of the last life are gone: their end takes a moment on a busy machine, and
// a new server refuses to start beside them.
func (s *Server) startAgain(ctx context.Context) (*postmaster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * pollInterval)
	defer tick.Stop()
	for {
		before := len(s.Log())
		p, err := s.folder.start(ctx)
		if err == nil || !strings.Contains(s.Log()[before:], "pre-existing shared memory block") {
			return p, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

// remove ends the server and deletes its folder.
func (s *Server) remove(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		if s.process.stop(syscall.SIGQUIT, stopTimeout) != nil {
			s.process.kill(ctx)
		}
		s.process = nil
	}
	freeSharedMemory(s.folder.pidFile())
	err := os.RemoveAll(s.folder.root)
	if s.watchdog != nil {
		err = errors.Join(err, s.watchdog.release())
	}
	return err
}
