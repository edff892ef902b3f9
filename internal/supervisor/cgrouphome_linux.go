package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// cgroupFolder holds the cgroups of all supervisors that share a place in the hierarchy.
const cgroupFolder = "cronlatch"

// errNoCgroups is wrapped with the cause.
var errNoCgroups = errors.New("no usable cgroup v2 hierarchy")

// makeHome makes the cgroup below which this supervisor puts its runs, and proves that a process can be created in it.
func makeHome(name string) (string, error) {
	places, err := cgroupPlaces()
	if err != nil {
		return "", err
	}
	var problems []error
	for _, place := range places {
		home := filepath.Join(place, cgroupFolder, homeName(name))
		if err := tryHome(home); err != nil {
			problems = append(problems, err)
			continue
		}
		return home, nil
	}
	return "", fmt.Errorf("%w: %w", errNoCgroups, errors.Join(problems...))
}

func tryHome(home string) error {
	if err := os.MkdirAll(home, 0o755); err != nil {
		return fmt.Errorf("making a cgroup: %w", err)
	}
	if err := probe(home); err != nil {
		_ = cgroupTree{home}.remove()
		_ = syscall.Rmdir(filepath.Dir(home)) // refused when others use it
		return err
	}
	return nil
}

// probe starts a program that does not exist: when the kernel gets as far as noticing that, the new process was in the
// cgroup already.
func probe(home string) error {
	t, f, err := newCgroup(home, 0, "probe")
	if err != nil {
		return err
	}
	defer func() {
		_ = f.Close()
		_ = t.remove()
	}()
	if _, err := os.Stat(filepath.Join(t.dir, "cgroup.events")); err != nil {
		return fmt.Errorf("looking for cgroup.events: %w", err)
	}
	attr := &syscall.ProcAttr{Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}}
	if _, err := syscall.ForkExec("/nonexistent/cronlatch-probe", []string{"probe"}, attr); !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("creating a process in a cgroup: %w", err)
	}
	return nil
}

// removeHome is a no-op while something is left in it.
func removeHome(home string) {
	if home == "" {
		return
	}
	_ = cgroupTree{home}.remove()
	_ = syscall.Rmdir(filepath.Dir(home))
}

// cgroupPlaces is where cgroups may be made: below our own one, or at the top of the hierarchy.
func cgroupPlaces() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("%w: reading mountinfo: %w", errNoCgroups, err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("%w: reading our own cgroup: %w", errNoCgroups, err)
	}
	return findPlaces(string(mounts), string(own))
}

func findPlaces(mountinfo, own string) ([]string, error) {
	root, point, ok := cgroupMount(mountinfo)
	if !ok {
		return nil, fmt.Errorf("%w: it is not mounted", errNoCgroups)
	}
	path, ok := ownCgroup(own)
	if !ok {
		return nil, fmt.Errorf("%w: we are in none", errNoCgroups)
	}
	// In a container the mount may show only a part of the hierarchy.
	rest, within := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
	if !within || rest == "" {
		return []string{point}, nil
	}
	return []string{filepath.Join(point, filepath.Clean("/"+rest)), point}, nil
}

// cgroupMount reads proc(5) mountinfo: "31 23 0:28 ROOT POINT options [tags] - TYPE source options".
func cgroupMount(mountinfo string) (root, point string, ok bool) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(mountinfo) {
		left, right, found := strings.Cut(line, " - ")
		fields := strings.Fields(left)
		if found && len(fields) >= 5 && strings.HasPrefix(right, "cgroup2 ") {
			return unescape.Replace(fields[3]), unescape.Replace(fields[4]), true
		}
	}
	return "", "", false
}

func ownCgroup(own string) (string, bool) {
	for line := range strings.Lines(own) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path, true
		}
	}
	return "", false
}
