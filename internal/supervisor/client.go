package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// Mode says whether cgroups are used.
type Mode string

// The modes. The zero value is CgroupsAuto.
const (
	CgroupsAuto Mode = "auto" // when the machine lets us
	CgroupsOff  Mode = "off"
)

// Options of a Client. The zero value works in the cronlatch binary.
type Options struct {
	// Executable is the program that is the supervisor when called with Args; empty is the running program.
	Executable string
	// Args are its arguments; nil is Command.
	Args    []string
	Logger  *zap.Logger // nil is silent
	Cgroups Mode
	Name    string // of the replica, in the names of cgroups
	// Inherit is for a program that runs one command in its place: the first command gets all descriptors that this
	// program was started with, stays in its session, in a process group of its own, and may gain privileges from
	// set-user-ID files. There is no second command, and no output in the Result.
	Inherit bool
}

var errClosed = errors.New("supervisor: the client is closed")

// Client is the daemon's side. All methods may be called by several goroutines.
type Client struct {
	o Options

	mu         sync.Mutex
	closed     bool
	session    *session // the youngest; nil when it could not be started
	sessions   sync.WaitGroup
	weaknesses []string
}

// Start kills what former daemons of this host left behind, starts a supervisor and waits until it is ready.
func Start(o Options) (*Client, error) {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Args == nil {
		o.Args = []string{Command}
	}
	if o.Cgroups == "" {
		o.Cgroups = CgroupsAuto
	}
	if o.Executable == "" {
		path, err := ownExecutable()
		if err != nil {
			return nil, fmt.Errorf("finding our own program: %w", err)
		}
		o.Executable = path
	}
	if o.Cgroups != CgroupsOff {
		sweep(o.Logger)
	}
	c := &Client{o: o}
	if _, err := c.current(); err != nil {
		return nil, err
	}
	return c, nil
}

// current is the session of a living supervisor, a new one if the last has died.
func (c *Client) current() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.session != nil && !c.session.isGone() {
		return c.session, nil
	}
	s, err := open(c.o, &c.sessions)
	if err != nil {
		c.session = nil
		return nil, err
	}
	c.session = s
	c.weaknesses = s.hello.Weaknesses
	return s, nil
}

// Start runs a command. It returns when the command has been executed, or else with a *StartError when it is certain
// that it never will be; an ended ctx makes that happen soon, a stuck supervisor within seconds of the deadline. When the
// supervisor dies meanwhile, nobody knows whether the command was executed: the Process has ended as
// CauseSupervisorGone, and its PID may be 0.
func (c *Client) Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := complete(&spec); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, &StartError{ReasonCancelled, context.Cause(ctx).Error()}
	}
	s, err := c.current()
	if err != nil {
		return nil, &StartError{ReasonSupervisor, err.Error()}
	}
	p, err := s.start(spec)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.settled:
	case <-ctx.Done():
		p.Stop()
		<-p.settled
	}
	if p.refused != nil {
		return nil, p.refused
	}
	return p, nil
}

// complete checks what would otherwise go wrong in another process, and makes Dir absolute: the supervisor's working
// directory is not ours.
func complete(spec *Spec) error {
	if len(spec.Argv) == 0 {
		return &StartError{ReasonNotFound, "there is no command"}
	}
	dir, err := filepath.Abs(spec.Dir) // of "": the working directory
	if err != nil {
		return &StartError{ReasonDir, fmt.Sprintf("finding the working directory: %v", err)}
	}
	spec.Dir = dir
	return nil
}

// Weaknesses are sentences that say which guarantee is weaker on this machine; none on Linux with cgroup v2.
func (c *Client) Weaknesses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	weaknesses := slices.Clone(c.weaknesses)
	if !boottime.CountsSuspend() {
		weaknesses = append(weaknesses, "The clock of this platform stands still while the machine is suspended: a job may run past its lock's deadline by that time.")
	}
	return weaknesses
}

// PID is that of the supervisor, 0 when there is none.
func (c *Client) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil || c.session.isGone() {
		return 0
	}
	return c.session.process.Pid
}

// Close stops all runs, waits until they are dead and ends the supervisor.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	s := c.session
	c.mu.Unlock()
	if s != nil {
		s.leave()
	}
	c.sessions.Wait()
	return nil
}
