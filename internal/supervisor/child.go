package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// ChildCommand is the hidden command of the binary that becomes a job's command.
const ChildCommand = "exec-child"

// Descriptors of the child between fork and exec, unless its arguments name others.
const (
	childOrderFD   = 3
	childVerdictFD = 4
)

// childOrder is what the supervisor tells the child before exec.
type childOrder struct {
	Parent int           `json:"parent"`
	Argv   [][]byte      `json:"argv"`
	Env    [][]byte      `json:"env"`
	Dir    []byte        `json:"dir"`
	User   *Account      `json:"user,omitempty"`
	StopAt time.Duration `json:"stop_at"`

	Heir       bool             `json:"heir,omitempty"` // it gets more than a job does; see Options.Inherit
	Keep       []int            `json:"keep,omitempty"` // descriptors, ascending
	Foreground bool             `json:"foreground,omitempty"`
	Ignore     []syscall.Signal `json:"ignore,omitempty"`
}

// verdict is what the child says: ready immediately before exec, and a refusal when it will not or cannot. After ready,
// the end of the pipe without a refusal is the proof of exec, since exec closes it.
type verdict struct {
	Ready   bool        `json:"ready,omitempty"`
	Refused *StartError `json:"refused,omitempty"`
}

// ChildMain is `cronlatch exec-child`: it runs between fork and exec, in the process that becomes the command. It
// returns only when the command is not executed.
func ChildMain(args []string) int { return childMain(args, func(childOrder) {}) }

// childMain calls frozen where a test may hold the process up: after everything but the last look at the clock.
func childMain(args []string, frozen func(childOrder)) int {
	runtime.LockOSThread() // no_new_privs, signal mask and parent-death signal belong to the thread that calls exec
	orderFD, verdictFD := childEnds(args)
	in := os.NewFile(orderFD, "order")
	out := os.NewFile(verdictFD, "verdict")
	if in == nil || out == nil {
		return 1
	}
	refused := become(in, out, frozen)
	if err := json.NewEncoder(out).Encode(verdict{Refused: refused}); err != nil {
		return 1 // no supervisor: nobody to tell
	}
	return max(refused.ExitCode(), 1)
}

func childEnds(args []string) (order, verdict uintptr) {
	if len(args) != 2 {
		return childOrderFD, childVerdictFD
	}
	numbers := [2]uint64{}
	for i, arg := range args {
		numbers[i], _ = strconv.ParseUint(arg, 10, 16) // not a number: 0, on which nothing can be read or written
	}
	return uintptr(numbers[0]), uintptr(numbers[1])
}

func become(in io.Reader, out io.Writer, frozen func(childOrder)) *StartError {
	var o childOrder
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return &StartError{ReasonSystem, fmt.Sprintf("reading the order to start: %v", err)}
	}
	argv, env := toStrings(o.Argv), toStrings(o.Env)
	if err := os.Chdir(string(o.Dir)); err != nil {
		return &StartError{ReasonDir, fmt.Sprintf("entering the working directory: %v", err)}
	}
	path, refused := lookup(argv[0], env)
	if refused != nil {
		return refused
	}
	if o.Foreground {
		takeTerminal()
	}
	for _, sig := range o.Ignore {
		signal.Ignore(sig)
	}
	if err := harden(o.Keep, !o.Heir); err != nil {
		return &StartError{ReasonSystem, err.Error()}
	}
	if err := assume(o.User); err != nil {
		return &StartError{ReasonUser, err.Error()}
	}
	frozen(o)
	if err := lastLook(o); err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(verdict{Ready: true}); err != nil {
		return &StartError{ReasonSupervisor, "the supervisor is gone"}
	}
	return execError(path, syscall.Exec(path, argv, env))
}

// lastLook is the reason why this program exists: whoever started us may have been frozen since, and the run may have
// been given to somebody else.
func lastLook(o childOrder) *StartError {
	if os.Getppid() != o.Parent {
		return &StartError{ReasonSupervisor, "the supervisor is gone"}
	}
	if late := boottime.Now() - o.StopAt; late >= 0 {
		return stale(late)
	}
	return nil
}

func stale(late time.Duration) *StartError {
	return &StartError{ReasonStale, fmt.Sprintf("the lock's time to stop passed %v ago", late)}
}

// readVerdict waits for exec or for the child's end.
func readVerdict(r io.Reader) *StartError {
	dec := json.NewDecoder(r)
	ready := false
	for {
		var v verdict
		err := dec.Decode(&v)
		switch {
		case err == nil && v.Refused != nil:
			return v.Refused
		case err == nil:
			ready = ready || v.Ready
		case ready && errors.Is(err, io.EOF):
			return nil
		default:
			return &StartError{ReasonSystem, "the child ended before it could execute the command"}
		}
	}
}
