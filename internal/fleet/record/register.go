package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Write is one attempt to write to the register of a resource, as the register keeps it.
type Write struct {
	Token    int64 `json:"token"`
	Run      int64 `json:"run"`
	Accepted bool  `json:"accepted"`
}

// registerPath is the file of a resource; the name may have slashes in it.
func registerPath(dir, resource string) string {
	return filepath.Join(dir, url.PathEscape(resource)+".register")
}

// Put offers a write with a token. It is accepted unless a larger token was accepted before; look and write are one
// step, under a lock on the file.
func Put(dir, resource string, w Write) (accepted bool, err error) {
	f, err := os.OpenFile(registerPath(dir, resource), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return false, fmt.Errorf("opening the register: %w", err)
	}
	defer f.Close() //nolint:errcheck // closing also unlocks; what was written is in the kernel's hands already
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return false, fmt.Errorf("locking the register: %w", err)
	}
	history, err := readWrites(f)
	if err != nil {
		return false, err
	}
	w.Accepted = true
	for _, earlier := range history {
		if earlier.Accepted && earlier.Token > w.Token {
			w.Accepted = false
		}
	}
	line, err := json.Marshal(w)
	if err != nil {
		return false, fmt.Errorf("encoding a write: %w", err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return false, fmt.Errorf("writing to the register: %w", err)
	}
	return w.Accepted, nil
}

func readWrites(r io.Reader) ([]Write, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading the register: %w", err)
	}
	var writes []Write
	for line := range bytes.Lines(content) {
		var w Write
		if err := json.Unmarshal(line, &w); err != nil {
			return nil, fmt.Errorf("reading write %d: %w", len(writes)+1, err)
		}
		writes = append(writes, w)
	}
	return writes, nil
}

// Registers returns the history of every register in dir, by resource.
func Registers(dir string) (map[string][]Write, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.register"))
	if err != nil {
		return nil, fmt.Errorf("looking for registers: %w", err)
	}
	all := make(map[string][]Write, len(files))
	for _, path := range files {
		escaped := filepath.Base(path)
		resource, err := url.PathUnescape(escaped[:len(escaped)-len(".register")])
		if err != nil {
			return nil, fmt.Errorf("reading a register's name: %w", err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a register: %w", err)
		}
		if all[resource], err = readWrites(bytes.NewReader(content)); err != nil {
			return nil, fmt.Errorf("%s: %w", resource, err)
		}
	}
	return all, nil
}
