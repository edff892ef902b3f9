package fleet

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// watchdogScript waits for the end of its input, which is the end of the test process however it came about, kills
// everything that belongs to its fleets (see family), again until nothing is left, and removes the folders.
const watchdogScript = `
trap '' INT TERM HUP
cat >/dev/null
tries=0
while [ $tries -lt 50 ]; do
	found=
	for proc in /proc/[0-9]*; do
		case $(readlink "$proc/exe" 2>/dev/null) in
		"$2"/*) ;;
		*) grep -qsF -- "$1" "$proc/environ" 2>/dev/null || continue ;;
		esac
		kill -9 "${proc#/proc/}" 2>/dev/null && found=1
	done
	[ -z "$found" ] && break
	tries=$((tries + 1))
done
rm -rf -- "$2" "$3"
`

// startWatchdog leaves a shell process behind that outlives this one for a moment. The caller keeps the pipe for as long
// as the watchdog shall wait: a file that nobody refers to is closed by the garbage collector.
func startWatchdog(mark, programs, databases string) (io.Closer, error) {
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", watchdogScript, "watchdog", mark, programs, databases)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"} // no mark: it must not find itself
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making the watchdog's pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return pipe, nil
}
