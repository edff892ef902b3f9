package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = time.Minute
	pollInterval = 10 * time.Millisecond
)

// postmaster is one running server process: PostgreSQL's, or a pooler.
type postmaster struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
}

// start runs the server and returns when it accepts connections.
func (f folder) start(ctx context.Context) (*postmaster, error) {
	p, err := f.spawn(ctx, filepath.Join(f.bin, "postgres"), "-D", f.data())
	if err != nil {
		return nil, err
	}
	if err := p.ready(ctx, func() bool { return p.saysReady(f.pidFile()) }); err != nil {
		return nil, err
	}
	return p, nil
}

// spawn runs a server program, whose output goes to the folder's log.
func (f folder) spawn(ctx context.Context, program string, args ...string) (*postmaster, error) {
	log, err := os.OpenFile(f.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the server has its own descriptor; nothing was written through this one
	// The server lives until it is stopped, not until the context of its start ends.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	f.prepare(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(program), err)
	}
	p := &postmaster{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return p, nil
}

// ready waits until the server accepts connections, which says tells. A server that never does is killed.
func (p *postmaster) ready(ctx context.Context, says func() bool) error {
	err := p.awaitReady(ctx, says)
	if err != nil {
		p.kill(context.WithoutCancel(ctx))
	}
	return err
}

func (p *postmaster) awaitReady(ctx context.Context, says func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if says() {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("starting %s: it ended at once", p.name())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be ready: %w", p.name(), ctx.Err())
		case <-tick.C:
		}
	}
}

func (p *postmaster) name() string { return filepath.Base(p.cmd.Path) }

// saysReady looks for "ready" in postmaster.pid, as pg_ctl does.
func (p *postmaster) saysReady(pidFile string) bool {
	const pidLine, statusLine = 0, 7
	content, err := os.ReadFile(pidFile)
	if err != nil {
		return false
	}
	lines := strings.Split(string(content), "\n")
	return len(lines) > statusLine && lines[pidLine] == strconv.Itoa(p.cmd.Process.Pid) &&
		strings.TrimSpace(lines[statusLine]) == "ready"
}

// stop sends a signal and waits until the server is gone.
func (p *postmaster) stop(signal os.Signal, patience time.Duration) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s: %w", p.name(), err)
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-p.done:
		return nil
	case <-timeout.C:
		return fmt.Errorf("stopping %s: still there %s after signal %q", p.name(), patience, signal)
	}
}

// kill ends the server and its children at once, as if the machine had lost its power. The stopped postmaster can
// neither start new children nor tidy up between the two steps.
func (p *postmaster) kill(ctx context.Context) {
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGSTOP) // the only error is that it is gone
	for _, child := range children(ctx, p.cmd.Process.Pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}
