package supervisor

import (
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"time"
)

// The daemon sends orders, the supervisor sends reports: one JSON object per line on a socket pair.
const (
	orderSetup  = "setup"
	orderStart  = "start"
	orderExtend = "extend"
	orderStop   = "stop"
	orderKill   = "kill"
	orderSignal = "signal"
	orderPing   = "ping"
	orderOutput = "output" // what has the run printed from a byte on? One answer each
	orderLeave  = "leave"  // like the end of the connection: stop everything, then exit

	reportHello   = "hello"
	reportStarted = "started"
	reportRefused = "refused"
	reportDone    = "done"
	reportStopped = "stopped" // by a signal such as SIGTSTP; it can go on
	reportPong    = "pong"
	reportOutput  = "output"
	reportTrouble = "trouble"
)

type order struct {
	Op       string        `json:"op"`
	Run      uint64        `json:"run,omitempty"`
	Setup    *setup        `json:"setup,omitempty"`
	Spec     *wireSpec     `json:"spec,omitempty"`
	StopAt   time.Duration `json:"stop_at,omitempty"`
	Deadline time.Duration `json:"deadline,omitempty"`
	Signal   int           `json:"signal,omitempty"`
	Since    int64         `json:"since,omitempty"`
}

type setup struct {
	Name    string `json:"name"`
	Cgroups Mode   `json:"cgroups"`
}

type report struct {
	Op      string      `json:"op"`
	Run     uint64      `json:"run,omitempty"`
	Hello   *hello      `json:"hello,omitempty"`
	Started *started    `json:"started,omitempty"`
	Refused *StartError `json:"refused,omitempty"`
	Result  *Result     `json:"result,omitempty"`
	Signal  int         `json:"signal,omitempty"`
	Chunk   *Chunk      `json:"chunk,omitempty"`
	Trouble string      `json:"trouble,omitempty"`
}

type hello struct {
	Cgroup     string   `json:"cgroup,omitempty"` // parent of the runs' cgroups; empty: process groups
	Weaknesses []string `json:"weaknesses,omitempty"`
}

// started is what the client needs to kill the tree itself when the supervisor cannot.
type started struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // see process.start
	Cgroup    string `json:"cgroup,omitempty"`
}

// wireSpec is a Spec in a form that JSON carries unchanged: arguments need not be UTF-8.
type wireSpec struct {
	ID        string        `json:"id"`
	Argv      [][]byte      `json:"argv"`
	Env       [][]byte      `json:"env"`
	Dir       []byte        `json:"dir"`
	User      *Account      `json:"user,omitempty"`
	StopAt    time.Duration `json:"stop_at"`
	Deadline  time.Duration `json:"deadline"`
	Timeout   time.Duration `json:"timeout"`
	KillAfter time.Duration `json:"kill_after"`
	HeadBytes int           `json:"head_bytes"`
	TailBytes int           `json:"tail_bytes"`
	Mask      [][]byte      `json:"mask,omitempty"`

	Foreground bool             `json:"foreground,omitempty"`
	Ignore     []syscall.Signal `json:"ignore,omitempty"`
}

func (s *Spec) wire() *wireSpec {
	return &wireSpec{
		ID: s.ID, Argv: toBytes(s.Argv), Env: toBytes(s.Env), Dir: []byte(s.Dir), User: s.User,
		StopAt: s.StopAt, Deadline: s.Deadline, Timeout: max(s.Timeout, 0), KillAfter: max(s.KillAfter, 0),
		HeadBytes: max(s.HeadBytes, 0), TailBytes: max(s.TailBytes, 0), Mask: s.Mask, Foreground: s.Foreground, Ignore: s.Ignore,
	}
}

func toBytes(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

func toStrings(in [][]byte) []string {
	out := make([]string, len(in))
	for i, b := range in {
		out[i] = string(b)
	}
	return out
}

// send writes what is queued until the queue is closed or the peer is gone. It runs in a goroutine of its own, because
// a write blocks for as long as the peer does not read.
func send[T any](w io.Writer, q *queue[T]) error {
	enc := json.NewEncoder(w)
	for {
		batch, ok := q.take()
		if !ok {
			return nil
		}
		for _, m := range batch {
			if err := enc.Encode(m); err != nil {
				q.close()
				return fmt.Errorf("writing to the peer: %w", err)
			}
		}
	}
}

// receive hands each message to handle until the connection ends.
func receive[T any](r io.Reader, handle func(T)) error {
	dec := json.NewDecoder(r)
	for {
		var m T
		if err := dec.Decode(&m); err != nil {
			return fmt.Errorf("reading from the peer: %w", err)
		}
		handle(m)
	}
}
