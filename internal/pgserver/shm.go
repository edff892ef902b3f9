package pgserver

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// freeSharedMemory removes the 56 bytes of System V shared memory by which a server guards its data directory. A server
// that was killed leaves them behind, with their number in postmaster.pid; the kernel has few to give on macOS.
func freeSharedMemory(pidFile string) {
	const shmemLine = 6 // "key id"
	content, err := os.ReadFile(pidFile)
	if err != nil {
		return // a clean stop has removed both
	}
	lines := strings.Split(string(content), "\n")
	if len(lines) <= shmemLine {
		return
	}
	_, number, _ := strings.Cut(strings.TrimSpace(lines[shmemLine]), " ")
	if id, err := strconv.Atoi(strings.TrimSpace(number)); err == nil {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) // gone already is as good
	}
}
