package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// ErrNone says that no demo is running where one was looked for.
var ErrNone = errors.New("no demo is running")

const (
	socketName  = "control"
	stateName   = "demo.json"
	stateFolder = "cronlatch"

	// controlPatience is for one question and its answer.
	controlPatience = 10 * time.Second
	maxState        = 16 << 10
)

// state is where a running demo is to be found.
type state struct {
	PID    int    `json:"pid"`
	Dir    string `json:"dir"`
	Socket string `json:"socket"`
}

// question and answer go over the socket, one line each.
type question struct {
	Kill string `json:"kill"` // a replica's name; "" is one that holds a lock
}

// Killed is what a demo says about a replica that it has killed.
type Killed struct {
	Replica string   `json:"replica"`
	Held    []string `json:"held"` // the resources whose locks others will take over
	Error   string   `json:"error,omitempty"`
}

// Kill asks the running demo of this user, or the one in dir, to kill a replica; without a name one that holds a lock. The
// error wraps ErrNone when there is no demo.
func Kill(ctx context.Context, dir, replica string) (Killed, error) {
	if dir == "" {
		dir = stateDir()
	}
	s, err := readState(dir)
	if err != nil {
		return Killed{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, controlPatience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", s.Socket)
	if err != nil {
		return Killed{}, fmt.Errorf("%w: that of process %d is over", ErrNone, s.PID)
	}
	defer func() { _ = conn.Close() }()
	return ask(ctx, conn, question{replica})
}

func ask(ctx context.Context, conn net.Conn, q question) (k Killed, err error) {
	deadline, _ := ctx.Deadline()
	if err = conn.SetDeadline(deadline); err == nil {
		if err = json.NewEncoder(conn).Encode(q); err == nil {
			err = json.NewDecoder(conn).Decode(&k)
		}
	}
	switch {
	case err != nil:
		return k, fmt.Errorf("asking the demo: %w", err)
	case k.Error != "":
		return k, errors.New(k.Error)
	default:
		return k, nil
	}
}

// answer reads one question, and writes what do says.
func answer(conn net.Conn, do func(question) Killed) {
	defer func() { _ = conn.Close() }()
	var q question
	if conn.SetDeadline(time.Now().Add(controlPatience)) != nil {
		return
	}
	text, err := bufio.NewReaderSize(conn, maxState).ReadSlice('\n')
	if err != nil || json.Unmarshal(text, &q) != nil {
		return
	}
	_ = json.NewEncoder(conn).Encode(do(q)) // whoever asked may be gone
}

// stateDir is the folder of this user in which the last demo says where it is.
func stateDir() string {
	if cache, err := os.UserCacheDir(); err == nil {
		return filepath.Join(cache, stateFolder)
	}
	// Without a home: a folder that nobody else can have made.
	return filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d", stateFolder, os.Getuid()))
}

// writeState says in a folder where the demo is.
func writeState(dir string, s state) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the demo's state: %w", err)
	}
	if err := private(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, stateName)
	draft, err := os.CreateTemp(dir, stateName+"-") // mode 0600; a rename follows no link that lies there
	if err != nil {
		return fmt.Errorf("writing the demo's state: %w", err)
	}
	err = json.NewEncoder(draft).Encode(s)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the demo's state: %w", err), os.Remove(draft.Name()))
	}
	return nil
}

// removeState takes the state away unless it is another demo's by now.
func removeState(dir string, mine state) error {
	if s, err := readState(dir); err != nil || s != mine {
		return nil //nolint:nilerr // not there, or not ours
	}
	return os.Remove(filepath.Join(dir, stateName)) //nolint:wrapcheck // it names the file
}

// readState believes only what this user has written: whatever is there decides which process is asked.
func readState(dir string) (s state, err error) {
	path := filepath.Join(dir, stateName)
	for _, p := range []string{dir, path} {
		err := private(p)
		if errors.Is(err, fs.ErrNotExist) {
			return s, fmt.Errorf("%w (there is no %s)", ErrNone, path)
		}
		if err != nil {
			return s, err
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("reading the demo's state: %w", err)
	}
	if len(text) > maxState || json.Unmarshal(text, &s) != nil || s.Socket == "" {
		return s, fmt.Errorf("%s is not the state of a demo; remove it", path)
	}
	return s, nil
}
