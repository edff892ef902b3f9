package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// defaultPath is searched when the job's environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// lookup finds the file that a shell in the current directory would execute, by the job's PATH and not by ours.
func lookup(name string, env []string) (string, *StartError) {
	if name == "" {
		return "", &StartError{ReasonNotFound, "the name of the command is empty"}
	}
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	var denied *StartError
	for _, dir := range filepath.SplitList(searchPath(env)) {
		if dir == "" {
			dir = "."
		}
		path := dir + "/" + name // filepath.Join would turn ./name into name
		switch err := executable(path); {
		case err == nil:
			return path, nil
		case err.Reason == ReasonNotExecutable && denied == nil:
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &StartError{ReasonNotFound, fmt.Sprintf("%q was not found in the job's PATH %q", name, searchPath(env))}
}

// searchPath is the last PATH of env, as in a shell.
func searchPath(env []string) string {
	for _, entry := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(entry, "PATH="); ok {
			return v
		}
	}
	return defaultPath
}

func executable(path string) *StartError {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return &StartError{ReasonNotFound, fmt.Sprintf("%q does not exist", path)}
	case err != nil:
		return &StartError{ReasonNotExecutable, fmt.Sprintf("%q cannot be executed: %v", path, err)}
	case info.IsDir():
		return &StartError{ReasonNotExecutable, fmt.Sprintf("%q is a directory", path)}
	case info.Mode()&0o111 == 0:
		return &StartError{ReasonNotExecutable, fmt.Sprintf("%q has no execute permission", path)}
	default:
		return nil
	}
}

// execError explains why execve refused a file that lookup had found.
func execError(path string, err error) *StartError {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return &StartError{ReasonNotExecutable, fmt.Sprintf("%q is not a program for this machine, or a script without a #! line", path)}
	case errors.Is(err, syscall.ENOENT):
		return &StartError{ReasonNotExecutable, fmt.Sprintf("the interpreter of %q does not exist", path)}
	case errors.Is(err, syscall.E2BIG), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EAGAIN):
		return &StartError{ReasonSystem, fmt.Sprintf("executing %q: %v", path, err)}
	default:
		return &StartError{ReasonNotExecutable, fmt.Sprintf("%q cannot be executed: %v", path, err)}
	}
}
