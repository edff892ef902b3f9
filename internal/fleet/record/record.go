// Package record is what jobs of the fleet tests write about themselves.
//
// Model: each process of a job appends one line to a shared file when it starts, every Beat while it lives, and when it
// ends by itself. A line has the instant on the boot clock, which all processes of a machine share and nobody can set, and
// the fencing token that the job was started with. So the lines of all jobs are one history that does not depend on
// what any daemon or database believes. Beside it, each resource has a register that accepts a write only with a token
// that is not smaller than the newest one it has seen: what DESIGN P11 asks of a resource.
//
// Guarantees: lines are whole and never lost while the machine lives: one write each to a file opened with O_APPEND.
//
// Non-guarantees: no fsync, so a crash of the machine loses lines. Whoever is killed between two beats lived up to
// Beat longer than its last line says.
//
// Failure handling: a recorder that cannot write ends with an error at once; a line that cannot be read is an error.
//
// How to test: go test ./internal/fleet/record.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// Beat is how often a living process writes.
const Beat = 20 * time.Millisecond

// Kind is what an event says.
type Kind string

// The kinds of events.
const (
	Start Kind = "start"
	Alive Kind = "beat"
	Stop  Kind = "stop" // the process ends by itself; whoever is killed has none
)

// The roles of a process in its job.
const (
	Main       = "main"
	Grandchild = "grandchild" // in a session of its own
)

// Event is one line.
type Event struct {
	Kind     Kind          `json:"kind"`
	Boot     time.Duration `json:"boot"` // on the boot clock
	Wall     time.Time     `json:"wall"`
	Job      string        `json:"job"`
	Resource string        `json:"resource"`
	Token    int64         `json:"token"`
	Run      int64         `json:"run"`
	Attempt  int           `json:"attempt"`
	At       time.Time     `json:"at"` // the scheduled instant
	PID      int           `json:"pid"`
	Role     string        `json:"role"`
}

// FromEnviron is an event with what the environment of a job's process says about its run.
func FromEnviron(getenv func(string) string) (Event, error) {
	var errs []error
	number := func(name string) int64 {
		n, err := strconv.ParseInt(getenv(name), 10, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", name, err))
		}
		return n
	}
	e := Event{
		Job: getenv("CRONLATCH_JOB"), Resource: getenv("CRONLATCH_LOCK"), Token: number("CRONLATCH_FENCING_TOKEN"),
		Run: number("CRONLATCH_RUN_ID"), Attempt: int(number("CRONLATCH_ATTEMPT")), PID: os.Getpid(),
	}
	at, err := time.Parse(time.RFC3339, getenv("CRONLATCH_SCHEDULED_AT"))
	if err != nil {
		errs = append(errs, fmt.Errorf("reading CRONLATCH_SCHEDULED_AT: %w", err))
	}
	e.At = at
	return e, errors.Join(errs...)
}

// Log appends events to a file.
type Log struct{ f *os.File }

// Open opens the file for appending.
func Open(path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the record: %w", err)
	}
	return &Log{f}, nil
}

// Write stamps the event with the clocks and appends it. The clocks are read before the write: an event that is in the
// file was true at its instant.
func (l *Log) Write(k Kind, e Event) error {
	e.Kind, e.Boot, e.Wall = k, boottime.Now(), time.Now().UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	if _, err := l.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *Log) Close() error { return l.f.Close() }

// Read returns the events of a file in the order of their instants as far as the writers were fast; none when the file
// does not exist. A last line without its end is somebody writing right now and is left out.
func Read(path string) ([]Event, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record: %w", err)
	}
	var events []Event
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading event %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events, nil
}
