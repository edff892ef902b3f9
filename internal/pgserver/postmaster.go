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

// postmaster is one running server process.
type postmaster struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
}

// start runs the server and returns when it accepts connections.
func (f folder) start(ctx context.Context) (*postmaster, error) {
	log, err := os.OpenFile(f.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the server has its own descriptor; nothing was written through this one
	// The server lives until it is stopped, not until the context of its start ends.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(f.bin, "postgres"), "-D", f.data())
	f.prepare(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting postgres: %w", err)
	}
	p := &postmaster{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in its log
	}()
	if err := p.ready(ctx, f.data()); err != nil {
		p.kill(context.WithoutCancel(ctx))
		return nil, err
	}
	return p, nil
}

// ready waits until the server has written "ready" into postmaster.pid, as pg_ctl does.
func (p *postmaster) ready(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if p.saysReady(data) {
			return nil
		}
		select {
		case <-p.done:
			return errors.New("starting postgres: it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("waiting for postgres to be ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func (p *postmaster) saysReady(data string) bool {
	const pidLine, statusLine = 0, 7
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
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
		return fmt.Errorf("signalling postgres: %w", err)
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-p.done:
		return nil
	case <-timeout.C:
		return fmt.Errorf("stopping postgres: still there %s after signal %q", patience, signal)
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
