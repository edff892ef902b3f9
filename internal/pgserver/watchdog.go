package pgserver

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// watchdogScript waits until standard input ends, which the kernel sees to when the starting process is gone, and then
// shuts the server of folder $1 down and removes the folder. It looks at the command line first: the process number
// in a left-over file $2 may belong to somebody else by now.
const watchdogScript = `
trap '' HUP INT TERM
cat >/dev/null
[ -d "$1" ] || exit 0
pid=$(head -n 1 "$2" 2>/dev/null)
alive() {
	{ ps -o args= -p "$pid" 2>/dev/null || tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null; } | grep -qF -- "$1"
}
if [ -n "$pid" ]; then
	for signal in QUIT QUIT QUIT QUIT QUIT KILL; do
		alive "$1" || break
		kill -"$signal" "$pid" 2>/dev/null
		for i in 1 2 3 4 5 6 7 8 9 10; do
			alive "$1" || break
			sleep 0.2
		done
	done
fi
for i in 1 2 3 4 5; do
	rm -rf "$1"
	[ -e "$1" ] || break
	sleep 1
done
`

// watchdog is the shell process that cleans up after a starting process that was killed.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

func startWatchdog(ctx context.Context, dir, pidFile string) (*watchdog, error) {
	// It outlives the context: that one may end before the clean-up.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", watchdogScript, "sh", dir, pidFile)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("opening the watchdog's pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// release ends the watchdog, which then removes the folder if it is still there.
func (w *watchdog) release() error {
	if err := w.pipe.Close(); err != nil {
		return fmt.Errorf("closing the watchdog's pipe: %w", err)
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("waiting for the watchdog: %w", err)
	}
	return nil
}
