package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// orphansReturn: a sub-reaper becomes the parent of whatever its descendants leave behind.
const orphansReturn = true

// chases bounds how often the newborn are looked for when the machine forks all the time.
const chases = 10

// processes reads the directory of processes, which takes a while, and then those that were born in that while, until
// there are none. Each step is shorter than the one before, so that a process which forks and ends again and again is
// seen in one of them, although it would never be seen in the first alone.
func processes() []process {
	var all []process
	last := lastPID()
	for _, pid := range listedPIDs() {
		all = appendProcess(all, pid)
	}
	for range chases {
		newest := lastPID()
		if newest == last {
			break
		}
		for _, pid := range bornBetween(last, newest) {
			all = appendProcess(all, pid)
		}
		last = newest
	}
	return all
}

func appendProcess(all []process, pid int) []process {
	if p, found, err := readProcess(pid); err == nil && found {
		return append(all, p)
	}
	return all
}

func listedPIDs() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := proc.Readdirnames(-1) // what was read before an error is still true
	_ = proc.Close()
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// lastPID is the number that was given last to a process or thread, see proc_loadavg(5).
func lastPID() int {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text[bytes.LastIndexByte(text, ' ')+1:])))
	return pid
}

// bornBetween is the numbers that were given after last, up to newest. They are given in ascending order, and after
// the highest one again from the lowest free one on.
func bornBetween(last, newest int) []int {
	if newest < last {
		return append(bornBetween(last, highestPID()), bornBetween(0, newest)...)
	}
	pids := make([]int, 0, newest-last)
	for pid := last + 1; pid <= newest; pid++ {
		pids = append(pids, pid)
	}
	return pids
}

// highestPID is bounded: pid_max may be four million, and the numbers above the last one given are hardly in use.
func highestPID() int {
	const most = 1 << 22
	text, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return most
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return min(pid, most)
}

// readProcess reads proc_pid_stat(5). It is called for every process of the machine, hence the bare system calls.
func readProcess(pid int) (p process, found bool, err error) {
	fd, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ENOENT) {
		return process{}, false, nil
	}
	if err != nil {
		return process{}, false, fmt.Errorf("opening the state of process %d: %w", pid, err)
	}
	var buf [1024]byte
	n, err := syscall.Read(fd, buf[:])
	_ = syscall.Close(fd)
	if errors.Is(err, syscall.ESRCH) {
		return process{}, false, nil
	}
	if err != nil {
		return process{}, false, fmt.Errorf("reading the state of process %d: %w", pid, err)
	}
	p, err = parseStat(buf[:n])
	p.pid = pid
	return p, err == nil, err
}

var errStat = errors.New("the state of a process is not as expected")

// parseStat takes the fields after the command's name, which is in parentheses and may hold anything, parentheses and
// blanks included.
func parseStat(line []byte) (process, error) {
	const last = 19 // start time
	field := 0
	var p process
	for text := range bytes.FieldsSeq(line[bytes.LastIndexByte(line, ')')+1:]) {
		switch field {
		case 0:
			p.zombie = text[0] == 'Z' || text[0] == 'X'
		case 1:
			p.ppid = number(text)
		case 2:
			p.pgid = number(text)
		case 3:
			p.sid = number(text)
		case last:
			p.start = uint64(max(number(text), 0))
			return p, nil
		}
		field++
	}
	return process{}, errStat
}

func number(text []byte) int {
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0
	}
	return n
}

func startTime(pid int) (uint64, bool) {
	p, found, err := readProcess(pid)
	return p.start, found && err == nil
}

func readEnvironment(pid int) environment {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return environment{}
	}
	e := environment{blank: len(text) == 0}
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		if bytes.HasPrefix(entry, []byte(markName)) {
			e.marks = append(e.marks, string(entry))
		}
	}
	return e
}

// age is how long ago a process was started. The kernel counts in hundredths of a second of the boot clock.
func (p process) age(now time.Duration) time.Duration {
	return now - time.Duration(p.start)*10*time.Millisecond
}

// inCgroup reports whether a process, a zombie included, is or was below dir of the version 2 hierarchy.
func inCgroup(pid int, dir string) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return false
	}
	path, ok := ownCgroup(string(text))
	_, below, found := strings.Cut(dir, "/"+cgroupFolder+"/")
	return ok && found && strings.Contains(path, "/"+cgroupFolder+"/"+below+"/")
}
