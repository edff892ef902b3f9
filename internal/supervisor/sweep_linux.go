package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

// sweepWait bounds how long a starting daemon waits for killed leftovers; they are killed either way.
const sweepWait = 5 * time.Second

// homeName says whose cgroup it is: the name, the PID namespace in which the numbers mean something, and the PID with
// its start time, since PIDs come back.
func homeName(name string) string {
	self := os.Getpid()
	start, _ := startTime(self)
	return fmt.Sprintf("%s.%s.%d.%d", fileName(name), pidNamespace(), self, start)
}

func pidNamespace() string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "unknown"
	}
	return strings.Trim(strings.TrimPrefix(link, "pid:"), "[]")
}

// deserted reports whether the supervisor that made the cgroup is certainly gone. A name that we cannot judge (made by
// somebody else, or in another PID namespace, where the same number is another process) is left alone.
func deserted(dir string) bool {
	parts := strings.Split(dir, ".")
	if len(parts) != 4 || parts[1] != pidNamespace() {
		return false
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil {
		return false
	}
	started, err := strconv.ParseUint(parts[3], 10, 64)
	if err != nil {
		return false
	}
	p, found, err := readProcess(pid)
	if err != nil {
		return false
	}
	return !found || p.zombie || p.start != started
}

// sweep kills what is left of runs whose daemon and supervisor died together.
func sweep(log *zap.Logger) {
	places, err := cgroupPlaces()
	if err != nil {
		return // no cgroups, no leftovers in them
	}
	for _, place := range places {
		folder := filepath.Join(place, cgroupFolder)
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() && deserted(e.Name()) {
				sweepHome(filepath.Join(folder, e.Name()), log)
			}
		}
	}
}

func sweepHome(home string, log *zap.Logger) {
	t := cgroupTree{home}
	if left := t.members(); len(left) > 0 {
		log.Warn("killing processes of a dead supervisor", zap.String("cgroup", home), zap.Ints("pids", left))
	}
	if !killAll(t, time.Now().Add(sweepWait)) {
		log.Error("processes of a dead supervisor do not die", zap.String("cgroup", home), zap.Ints("pids", t.members()))
		return
	}
	removeHome(home)
}
