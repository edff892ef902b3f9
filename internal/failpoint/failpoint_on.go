//go:build failpoints

// Package failpoint marks the places where tests stop or kill a daemon; this is the build that obeys.
package failpoint

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Enabled reports whether this build can be made to fail on purpose.
const Enabled = true

//nolint:gochecknoglobals // places have no state of their own, and the process is what is stopped
var passed atomic.Int64 // how often this process came by the place that it was told

// Hit obeys CRONLATCH_FAILPOINT="name=stop" (SIGSTOP to the own process) or "name=kill" (SIGKILL), once: the file named
// by CRONLATCH_FAILPOINT_MARK must not exist and is created first, so that a test sees that the place was reached.
// "name#3=kill" means the third time. The names of all places go to the file CRONLATCH_FAILPOINT_RECORD, a line for each
// time.
func Hit(name string) {
	note(name)
	want, action, ok := strings.Cut(os.Getenv("CRONLATCH_FAILPOINT"), "=")
	want, nth, _ := strings.Cut(want, "#")
	if !ok || want != name {
		return
	}
	if n, _ := strconv.ParseInt(nth, 10, 64); passed.Add(1) < n {
		return
	}
	f, err := os.OpenFile(os.Getenv("CRONLATCH_FAILPOINT_MARK"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_ = f.Close()
	if action == "kill" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		return
	}
	// The signal reaches the process a moment after the call, on a busy machine a long one. Nothing may happen here in between,
	// so the next thing that happens is that somebody lets the process go on.
	thawed := make(chan os.Signal, 1)
	signal.Notify(thawed, syscall.SIGCONT)
	defer signal.Stop(thawed)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-thawed
}

// note appends a line to the record.
func note(line string) {
	path := os.Getenv("CRONLATCH_FAILPOINT_RECORD")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(line + "\n") // a record with a hole fails the test that reads it
	_ = f.Close()
}

// WallOffset is CRONLATCH_WALL_OFFSET, a Go duration.
func WallOffset() time.Duration {
	d, _ := time.ParseDuration(os.Getenv("CRONLATCH_WALL_OFFSET"))
	return d
}

// Every is CRONLATCH_EVERY, a Go duration, when that is shorter than d.
func Every(d time.Duration) time.Duration {
	if short, err := time.ParseDuration(os.Getenv("CRONLATCH_EVERY")); err == nil {
		return min(short, d)
	}
	return d
}
