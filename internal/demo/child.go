package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// child is one process of a replica.
type child struct {
	cmd     *exec.Cmd
	readers sync.WaitGroup
	ends    []*os.File   // of its stdout and stderr
	exited  chan error   // of Wait, once
	logged  func() error // closes the log
}

// childEvents is what is told about a process, each in a goroutine of its own.
type childEvents struct {
	audit      func(line []byte)
	ready      func(url string)
	supervisor func(pid int)
}

// startChild starts a replica. The calling goroutine must keep its thread for as long as the process is to live: see
// dieWithUs.
func (o *Options) startChild(ctx context.Context, r *replica, dir string, tell childEvents) (*child, error) {
	log, err := os.OpenFile(filepath.Join(dir, r.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of replica %s: %w", r.name, err)
	}
	// It ends when we say so, which is not when ctx says so.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), o.Executable, "serve", //nolint:gosec // our own program
		"--config", filepath.Join(dir, configName), "--database-url", "sqlite:"+filepath.Join(dir, databaseName),
		"--replica", r.name, "--listen", r.listen, "--auth", "none", "--lock-ttl", lockTTL.String(),
		"--drain-timeout", "2s", "--log-format", "json")
	cmd.Env, cmd.Dir, cmd.SysProcAttr = o.Environ, dir, apart()
	c := &child{cmd: cmd, exited: make(chan error, 1), logged: log.Close}
	out, err := c.pipe(&cmd.Stdout)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	stderr, err := c.pipe(&cmd.Stderr)
	if err == nil {
		err = cmd.Start()
	}
	for _, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
		if f, ok := w.(*os.File); ok {
			err = errors.Join(err, f.Close()) // the process has its own
		}
	}
	if err != nil {
		c.close()
		return nil, errors.Join(fmt.Errorf("starting replica %s: %w", r.name, err), log.Close())
	}
	c.readers.Go(func() { eachLine(out, tell.audit) })
	c.readers.Go(func() {
		eachLine(stderr, func(line []byte) {
			_, _ = log.Write(append(line, '\n')) // a full disk stops no demo
			understand(line, tell)
		})
	})
	return c, nil
}

// pipe makes a pipe of which the process gets the end for writing.
func (c *child) pipe(into *io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	c.ends = append(c.ends, r)
	*into = w
	return r, nil
}

func eachLine(r io.Reader, see func([]byte)) {
	const longest = 1 << 20
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, longest)
	for scan.Scan() {
		see(scan.Bytes())
	}
	_, _ = io.Copy(io.Discard, r) // after a line that is too long, so that the writer never waits
}

// understand picks out of a replica's log what the demo needs.
func understand(line []byte, tell childEvents) {
	if url, ok := strings.CutPrefix(string(line), "cronlatch: ready at "); ok {
		tell.ready(url)
		return
	}
	var entry struct {
		Message string `json:"msg"`
		PID     int    `json:"pid"`
	}
	if json.Unmarshal(line, &entry) == nil && entry.Message == "supervisor started" {
		tell.supervisor(entry.PID)
	}
}

// wait returns when the process has ended and what it said was read.
func (c *child) wait() error {
	err := c.cmd.Wait()
	read := make(chan struct{})
	go func() { // ends with the readers, which end at the latest when the pipes are closed
		c.readers.Wait()
		close(read)
	}()
	const patience = 2 * time.Second
	select {
	case <-read:
	case <-time.After(patience): // somebody else has its pipes
	}
	c.close()
	<-read
	return errors.Join(err, c.logged())
}

func (c *child) close() {
	for _, f := range c.ends {
		_ = f.Close()
	}
}

// address is the base's port counted up, or any free one when that is taken.
func address(ctx context.Context, base, i int) string {
	const host = "127.0.0.1"
	wanted := net.JoinHostPort(host, strconv.Itoa(base+i))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", wanted)
	if err != nil {
		return net.JoinHostPort(host, "0")
	}
	if err := l.Close(); err != nil {
		return net.JoinHostPort(host, "0")
	}
	return wanted
}
