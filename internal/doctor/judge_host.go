package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/jobs"
)

// Configuration is what became of reading it.
type Configuration struct {
	Path     string
	Config   *configs.Config // nil: it could not be read
	Err      error
	Missing  bool // there is no file
	Warnings int
}

func judgeConfiguration(c *Configuration) Finding {
	const check = "configuration"
	switch {
	case c.Missing:
		return warn(check, "`cronlatch init` writes one; --config names another", "there is no %s", c.Path)
	case c.Err != nil:
		var problems *configs.Errors
		if errors.As(c.Err, &problems) {
			return bad(check, "`cronlatch validate` shows them", "%s has %s", c.Path, counted(len(problems.Problems), "problem"))
		}
		return bad(check, "make it readable for this user", "%v", c.Err)
	case c.Warnings > 0:
		return warn(check, "`cronlatch validate` shows them", "%s has %s", c.Path, counted(c.Warnings, "warning"))
	default:
		return good(check, "%s is valid, with %s", c.Path, counted(len(c.Config.Jobs), "job"))
	}
}

// listenerFacts are about the address that a daemon would have.
type listenerFacts struct {
	Address   string
	Exposed   error // the daemon would refuse to listen there
	Remedy    string
	Answering bool  // a cronlatch is there already
	Taken     error // something else is
}

func judgeListener(f *listenerFacts) Finding {
	const check = "listener"
	switch {
	case f.Exposed != nil:
		return bad(check, f.Remedy, "%v", f.Exposed)
	case f.Answering:
		return good(check, "a cronlatch answers at %s", f.Address)
	case f.Taken != nil:
		return bad(check, "set listen to another address, or end what is there", "%s cannot be had, and no cronlatch is there: %v", f.Address, f.Taken)
	default:
		return good(check, "%s is free", f.Address)
	}
}

func judgeToken(path string, mode fs.FileMode, err error) Finding {
	const check = "token file"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return good(check, "%s is not there; a daemon that needs one makes it", path)
	case err != nil:
		return warn(check, "give it to the daemon's user", "%v", err)
	case mode.Perm()&0o077 != 0:
		return bad(check, "chmod 600 "+path+", and make another token: others may have it", "others on this machine can read the admin token in %s", path)
	default:
		return good(check, "%s is for its owner alone", path)
	}
}

func judgeSupervisor(weaknesses []string, err error) Finding {
	const check = "supervisor"
	switch {
	case err != nil:
		return bad(check, "look at the limits of processes and memory of this user", "no command can be run: %v", err)
	case len(weaknesses) > 0:
		return warn(check, "give the daemon a cgroup of its own, for example by a systemd unit with Delegate=yes; docs/guarantees.md has the difference",
			"%s", strings.Join(weaknesses, " "))
	default:
		return good(check, "each run has a cgroup, which ends with all its processes")
	}
}

// fewFiles is what a daemon with the default capacity needs, with room.
const fewFiles = 1024

func judgeFiles(limit uint64, capacity int) Finding {
	needed := max(fewFiles, uint64(max(capacity, 0))*8)
	if limit < needed {
		return warn("open files", fmt.Sprintf("ulimit -n %d, or LimitNOFILE of the unit", needed), "the limit is %d", limit)
	}
	return good("open files", "the limit is %d", limit)
}

func judgeRoot(root bool, list []*jobs.Job) Finding {
	const check = "user"
	if !root {
		return good(check, "not root")
	}
	var names []string
	for _, j := range list {
		if (len(j.Command) > 0 || j.Run != "") && j.User == "" {
			names = append(names, j.Name)
		}
	}
	if len(names) == 0 {
		return good(check, "root, and no command runs as it unless it says so")
	}
	return warn(check, "run the daemon as a user of its own, or give the jobs a user",
		"root, and so would be the commands of %s (%s)", counted(len(names), "job"), names[0])
}
