//go:build failpoints

// Package failpoint marks the places where tests stop or kill a daemon; this is the build that obeys.
package failpoint

import (
	"os"
	"strings"
	"syscall"
	"time"
)

// Enabled reports whether this build can be made to fail on purpose.
const Enabled = true

// Hit obeys CRONLATCH_FAILPOINT="name=stop" (SIGSTOP to the own process) or "name=kill" (SIGKILL), once: the file named
// by CRONLATCH_FAILPOINT_MARK must not exist and is created first, so that a test sees that the place was reached.
func Hit(name string) {
	want, action, ok := strings.Cut(os.Getenv("CRONLATCH_FAILPOINT"), "=")
	if !ok || want != name {
		return
	}
	f, err := os.OpenFile(os.Getenv("CRONLATCH_FAILPOINT_MARK"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_ = f.Close()
	sig := syscall.SIGSTOP
	if action == "kill" {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(os.Getpid(), sig)
	if action == "stop" {
		// The signal reaches the process a moment after the call; nothing may happen in between.
		for stopped := time.Now(); time.Since(stopped) < 50*time.Millisecond; {
		}
	}
}

// WallOffset is CRONLATCH_WALL_OFFSET, a Go duration.
func WallOffset() time.Duration {
	d, _ := time.ParseDuration(os.Getenv("CRONLATCH_WALL_OFFSET"))
	return d
}
