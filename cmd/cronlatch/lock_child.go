package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/supervisor"
	"github.com/cronlatch/cronlatch/locking"
)

// lockChild is the command under the lock. The supervisor, a process of its own, ends it by the lock's deadline whatever
// happens to this one.
type lockChild struct {
	app     *app
	run     lockRun
	signals *lockSignals
	lock    *locking.Lock

	mu      sync.Mutex
	process *supervisor.Process // nil until it was executed

	terminal *lockTerminal
	asked    int            // signals that ask for the end
	killedBy syscall.Signal // the one that was too many
}

// execute runs the command and returns how it ended; the lock is released when all of it is dead.
func (c *lockChild) execute() error {
	if c.signals.over.Err() != nil {
		_ = c.release() // nothing ran that could have been disturbed
		return c.interrupted()
	}
	sup, err := supervisor.Start(supervisor.Options{Inherit: true, Name: "lock"})
	if err != nil {
		_ = c.release() // as above
		return fmt.Errorf("preparing to start the command: %w", err)
	}
	defer func() { _ = sup.Close() }() // nothing runs any more
	c.terminal = openLockTerminal()
	defer c.terminal.close()
	process, err := c.start(sup)
	if err != nil {
		c.terminal.takeBack(0)
		_ = c.release() // as above
		return c.notStarted(err)
	}
	result := c.supervise(process)
	c.terminal.takeBack(process.PID())
	told := context.Cause(c.lock.Context())
	found := c.release()
	return c.conclude(result, isTaken(told) || isTaken(found))
}

func (c *lockChild) start(sup *supervisor.Client) (*supervisor.Process, error) {
	ctx, cancel := context.WithCancel(c.lock.Context())
	defer cancel()
	stop := c.signals.whenOver(cancel)
	defer stop()
	process, err := sup.Start(ctx, supervisor.Spec{
		ID: c.run.resource, Argv: c.run.argv, Env: c.environ(),
		StopAt: c.lock.StopAt(), Deadline: c.lock.Deadline(), KillAfter: c.run.killAfter,
		Foreground: c.terminal.interactive(), Ignore: ignoredByCommand(),
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.process = process
	c.mu.Unlock()
	process.Extend(c.lock.StopAt(), c.lock.Deadline()) // a renewal may have come meanwhile
	return process, nil
}

// extend passes a renewal on.
func (c *lockChild) extend(stopAt, deadline time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		c.process.Extend(stopAt, deadline)
	}
}

// environ is the caller's environment with the lock in it.
func (c *lockChild) environ() []string {
	record := c.lock.Record()
	own := []string{
		"CRONLATCH_LOCK=" + record.Resource,
		"CRONLATCH_FENCING_TOKEN=" + formatToken(record.FencingToken),
		"CRONLATCH_LOCK_EXPIRES=" + record.ExpiresAt.UTC().Format(time.RFC3339Nano),
	}
	outer := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(o, name+"=") })
	})
	return append(outer, own...)
}

// supervise waits for the end, and passes on what happens until then.
func (c *lockChild) supervise(p *supervisor.Process) supervisor.Result {
	lost := c.lock.Context().Done()
	for {
		select {
		case <-p.Done():
			return p.Result()
		case <-lost:
			lost = nil
			c.app.say("the lock %q is lost: %s; stopping the command", c.run.resource, whyLost(context.Cause(c.lock.Context())))
			p.Stop()
		case sig := <-c.signals.queue:
			c.pass(p, sig)
		case sig := <-p.Halted():
			c.halted(p, sig)
		}
	}
}

// pass gives the command a signal that was sent to us. A terminal's Ctrl-C comes here only when the command does not have
// the terminal; else it has got the signal already, and we have not.
func (c *lockChild) pass(p *supervisor.Process, sig syscall.Signal) {
	switch sig {
	case syscall.SIGTSTP:
		c.app.say("a command that holds a lock cannot be suspended; it goes on")
		return
	case syscall.SIGCONT:
		if c.terminal.ours() { // `fg` of a shell with job control
			c.terminal.give(p.PID())
		}
	case syscall.SIGINT, syscall.SIGTERM:
		c.asked++
		if c.asked > 1 {
			c.killedBy = sig
			c.app.say("%s again: killing the command", unix.SignalName(sig))
			p.Kill()
			return
		}
		c.app.say("%s was passed on to the command; the next one kills it", unix.SignalName(sig))
	default:
	}
	p.Signal(sig)
}

// halted hears that the command itself was stopped. While it stands still its lock would stay taken, without anybody
// seeing why.
func (c *lockChild) halted(p *supervisor.Process, sig syscall.Signal) {
	switch {
	case sig == syscall.SIGTSTP:
		c.app.say("a command that holds a lock cannot be suspended; it goes on")
		p.Signal(syscall.SIGCONT)
	case (sig == syscall.SIGTTIN || sig == syscall.SIGTTOU) && c.terminal.ours():
		c.terminal.give(p.PID())
		p.Signal(syscall.SIGCONT)
	default:
		c.app.say("the command was stopped by %s, and holds its lock; SIGCONT lets it go on", unix.SignalName(sig))
	}
}

// release frees the name. It returns an error only when the database said that somebody else had got it.
func (c *lockChild) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.app.Patience)
	defer cancel()
	for {
		err := c.lock.Release(ctx)
		if err == nil || errors.Is(err, locking.ErrLost) {
			return err
		}
		select {
		case <-ctx.Done():
			c.app.say("the lock %q could not be released: %v", c.run.resource, err)
			c.app.say("it ends by itself %s", relative(c.lock.Deadline()-boottime.Now()+c.margin()))
			return nil
		case <-time.After(busyPause):
		}
	}
}

func (c *lockChild) margin() time.Duration {
	return locking.NewLease(locking.LeaseConfig{TTL: c.run.ttl}).Margin
}
