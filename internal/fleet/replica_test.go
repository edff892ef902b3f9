package fleet

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// Replica is one daemon process.
type Replica struct {
	Name  string
	fleet *Fleet
	cmd   *exec.Cmd
	log   string // path of the file with both output streams

	ended chan struct{} // closed when the process was waited for
	code  int           // its exit code; -1 when a signal killed it; valid after ended

	mu  sync.Mutex
	url string
}

// Start starts a daemon and does not wait until it is ready. Entries of env go before those of the fleet.
func (f *Fleet) Start(name string, env ...string) *Replica {
	f.tb.Helper()
	r := &Replica{Name: name, fleet: f, ended: make(chan struct{})}
	r.log = filepath.Join(f.dir, name+"-"+time.Now().UTC().Format("150405.000000")+".log")
	out, err := os.OpenFile(r.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	f.must(err)
	defer out.Close() //nolint:errcheck // the daemon has its own descriptor
	r.cmd = f.command("serve", "--replica", name, "--listen", "127.0.0.1:0")
	r.cmd.Env = append(r.cmd.Env, env...)
	r.cmd.Stdout, r.cmd.Stderr = out, out
	f.must(r.cmd.Start())
	f.add(r)
	go r.wait()
	return r
}

// wait ends with the process, which the fleet's clean-up kills.
func (r *Replica) wait() {
	_ = r.cmd.Wait() // how it ended is in its state
	r.code = r.cmd.ProcessState.ExitCode()
	close(r.ended)
}

// StartReady starts a daemon and waits until it says that it is ready.
func (f *Fleet) StartReady(name string, env ...string) *Replica {
	f.tb.Helper()
	r := f.Start(name, env...)
	r.WaitReady()
	return r
}

// toStart is how long it may take until the replicas of a fleet are ready on a busy machine, where an instant in the configuration
// must be after that.
const toStart = 15 * time.Second

// startReady starts several daemons at the same time and waits until all are ready.
func (f *Fleet) startReady(names ...string) {
	f.tb.Helper()
	for _, name := range names {
		f.Start(name)
	}
	for _, r := range f.Replicas() {
		r.WaitReady()
	}
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// WaitReady waits until /readyz says yes. The address is in the log: the port is the kernel's choice.
func (r *Replica) WaitReady() {
	r.fleet.tb.Helper()
	until(r.fleet.tb, "replica "+r.Name+" is ready", patience, func() bool {
		if r.Ended() {
			r.fleet.tb.Fatalf("replica %s ended with %d before it was ready", r.Name, r.code)
		}
		return r.readyz() == http.StatusOK
	})
}

// readyz is the status of /readyz, 0 when there was no answer.
func (r *Replica) readyz() int {
	url := r.address()
	if url == "" {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", http.NoBody)
	if err != nil {
		return 0
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close() // nothing of it is read
	return res.StatusCode
}

func (r *Replica) address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.url == "" {
		r.url = address.FindString(r.Log())
	}
	return r.url
}

// Log is what the daemon has printed so far.
func (r *Replica) Log() string {
	content, err := os.ReadFile(r.log)
	r.fleet.must(err)
	return string(content)
}

// Says waits until the daemon has printed a text.
func (r *Replica) Says(text string) {
	r.fleet.tb.Helper()
	until(r.fleet.tb, "replica "+r.Name+" says "+text, patience, func() bool { return strings.Contains(r.Log(), text) })
}

// PID is the daemon's process.
func (r *Replica) PID() int { return r.cmd.Process.Pid }

// Signal sends a signal to the daemon alone.
func (r *Replica) Signal(sig syscall.Signal) {
	r.fleet.tb.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.fleet.tb.Fatalf("sending %s to replica %s: %v", sig, r.Name, err)
	}
}

// Kill ends the daemon as kill -9 does, waits until it is gone, and returns the boot clock then: nothing that it does
// is later. Its supervisor lives on.
func (r *Replica) Kill() time.Duration {
	r.fleet.tb.Helper()
	r.Signal(syscall.SIGKILL)
	r.Wait(patience)
	return boottime.Now()
}

// Freeze stops the daemon with SIGSTOP, waits until the kernel says so, and returns the boot clock then.
func (r *Replica) Freeze() time.Duration {
	r.fleet.tb.Helper()
	r.Signal(syscall.SIGSTOP)
	r.WaitFrozen()
	return boottime.Now()
}

// WaitFrozen waits until the daemon is stopped, by us or by a failpoint.
func (r *Replica) WaitFrozen() {
	r.fleet.tb.Helper()
	until(r.fleet.tb, "replica "+r.Name+" is stopped", patience, func() bool {
		state, _ := stat(r.PID())
		return state == "T"
	})
}

// Thaw lets a stopped daemon go on.
func (r *Replica) Thaw() { r.fleet.tb.Helper(); r.Signal(syscall.SIGCONT) }

// Ended reports whether the daemon is gone.
func (r *Replica) Ended() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// Wait waits for the daemon's end and returns its exit code, -1 when a signal killed it.
func (r *Replica) Wait(limit time.Duration) int {
	r.fleet.tb.Helper()
	until(r.fleet.tb, "replica "+r.Name+" ends", limit, r.Ended)
	return r.code
}

// Leave sends SIGTERM and expects a clean end.
func (r *Replica) Leave(limit time.Duration) {
	r.fleet.tb.Helper()
	r.Signal(syscall.SIGTERM)
	r.leaves(limit)
}

// rowOpen is what a daemon says that had no second left for its last row, because the database was busy. It leaves with an
// exit code then, as it should, and nothing else is wrong with it.
var rowOpen = regexp.MustCompile(`(?m)^cronlatch: closing this replica's row: .*(locked|deadline exceeded|interrupted)$`)

// leaves waits for a clean end.
func (r *Replica) leaves(limit time.Duration) {
	r.fleet.tb.Helper()
	if code := r.Wait(limit); code != 0 && (code < 0 || !rowOpen.MatchString(r.Log())) {
		r.fleet.tb.Errorf("replica %s left with %d", r.Name, code)
	}
}

// Supervisor is the process that runs the daemon's commands; 0 when there is none.
func (r *Replica) Supervisor() int {
	for _, pid := range allProcesses() {
		if _, parent := stat(pid); parent == r.PID() && strings.Contains(commandLine(pid), " supervise ") {
			return pid
		}
	}
	return 0
}
