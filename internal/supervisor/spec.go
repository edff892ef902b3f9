package supervisor

import (
	"syscall"
	"time"
)

// Spec is one command to run. Everything the child gets is in it; nothing is taken from the daemon.
type Spec struct {
	// ID names the run, in the cgroup and in logs. An entry CRONLATCH_RUN_ID=... of Env is also the mark by which
	// the run's processes are recognized where there are no cgroups.
	ID string
	// Argv is the command and its arguments, not empty. A name without a slash is looked up in the PATH of Env.
	Argv []string
	// Env is the whole environment of the child, as NAME=value. Nil is an empty environment, never the daemon's.
	Env []string
	// Dir is the working directory; empty is the daemon's. A relative one is taken from the daemon's.
	Dir string

	// User is the account that the command runs as; nil is the daemon's. Only root can start it as somebody else. The
	// working directory is entered, and the command is looked up, before.
	User *Account

	// StopAt and Deadline are instants of the boot clock (internal/boottime): SIGTERM at the first, SIGKILL at the
	// second. A start that comes after StopAt is refused.
	StopAt, Deadline time.Duration
	// Timeout counts from exec; zero is none.
	Timeout time.Duration
	// KillAfter is the time between SIGTERM and SIGKILL, cut short by Deadline.
	KillAfter time.Duration

	// Foreground makes the command's process group the foreground group of the controlling terminal, just before exec.
	// Ignore are the signals that the command is started with as ignored. Both are for Options.Inherit.
	Foreground bool
	Ignore     []syscall.Signal

	// HeadBytes and TailBytes say how much of the output is kept, from its beginning and from its end.
	HeadBytes, TailBytes int
	// Mask are the texts in whose place the output has ***, as mask.Forms makes them. Their order does not matter.
	Mask [][]byte
}

// Account is who a command runs as: exactly these groups, and none of the daemon's.
type Account struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups,omitempty"` // the supplementary ones
}

// Cause is why a run ended.
type Cause string

// The causes. All but CauseExited say that the supervisor (or, for the last, the client) ended the run.
const (
	CauseExited         Cause = "exited"          // by itself, with a code or by somebody else's signal
	CauseTimeout        Cause = "timeout"         // Spec.Timeout passed
	CauseStopped        Cause = "stopped"         // Process.Stop or Kill, or the daemon left
	CauseDeadline       Cause = "deadline"        // StopAt came and nobody had moved it
	CauseSupervisorGone Cause = "supervisor_gone" // the supervisor died; the client killed the tree; the output is lost
)

// Result is how a run ended.
type Result struct {
	Cause Cause `json:"cause"`
	// ExitCode is that of the command itself, and -1 when a signal ended it or nobody saw its end.
	ExitCode int `json:"exit_code"`
	// Signal is the name of the signal that ended the command, such as SIGKILL; empty for none.
	Signal string `json:"signal,omitempty"`
	Output Output `json:"output"`
}

// Output is what the command wrote to stdout and stderr, in the order it arrived, any bytes. When Total is larger than
// both parts together, what lay between them was dropped.
type Output struct {
	Head  []byte `json:"head,omitempty"`
	Tail  []byte `json:"tail,omitempty"`
	Total int64  `json:"total"`
}

// Chunk is a piece of the output of a running command.
type Chunk struct {
	At    int64  `json:"at"` // of its first byte, counted from the first one of the output
	Data  []byte `json:"data,omitempty"`
	Total int64  `json:"total"` // how much was printed so far
}

// Reason is why a command could not be started.
type Reason string

// The reasons of a StartError.
const (
	ReasonStale         Reason = "stale"          // the lock's StopAt had passed before exec
	ReasonNotFound      Reason = "not_found"      // there is no such command
	ReasonNotExecutable Reason = "not_executable" // there is one, but it cannot be executed
	ReasonDir           Reason = "dir"            // the working directory cannot be entered
	ReasonCancelled     Reason = "cancelled"      // the caller's context ended before exec
	ReasonUser          Reason = "user"           // the command cannot run as its account
	ReasonSystem        Reason = "system"         // no memory, no processes left, arguments too long
	ReasonSupervisor    Reason = "supervisor"     // there is no supervisor
)

// StartError says that a command does not run and never did.
type StartError struct {
	Reason Reason `json:"reason"`
	Msg    string `json:"msg"`
}

// Error is a sentence for people.
func (e *StartError) Error() string { return "starting the command: " + e.Msg }

// ExitCode is what a shell would report: 127 not found, 126 not executable, else -1.
func (e *StartError) ExitCode() int {
	switch e.Reason {
	case ReasonNotFound:
		return 127
	case ReasonNotExecutable:
		return 126
	default:
		return -1
	}
}
