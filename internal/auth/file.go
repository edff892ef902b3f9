package auth

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxFile is more than a token and a newline can be.
const maxFile = 1024

// ErrFile says that the file of the admin token cannot be used.
var ErrFile = errors.New("auth: the token file")

// ReadFile returns the token in a file. The error wraps fs.ErrNotExist when there is none.
func ReadFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err //nolint:wrapcheck // it names the file and what was tried
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", err //nolint:wrapcheck // as above
	}
	token := strings.TrimSpace(string(data))
	if _, ok := ID(token); !ok || len(data) > maxFile {
		return "", fmt.Errorf("%s holds no token", path)
	}
	return token, nil
}

// createFile makes the file with the token, readable by its owner alone. It appears whole or not at all: others read it
// at any moment. The error wraps fs.ErrExist when something is there already, and then nothing was changed.
func createFile(path, token string) (err error) {
	dir := filepath.Dir(path)
	draft := filepath.Join(dir, "."+filepath.Base(path)+"-"+rand.Text())
	if err := writeDraft(draft, token+"\n"); err != nil {
		return err
	}
	// Unlike a rename, a link never replaces anything.
	err = os.Link(draft, path)
	return errors.Join(err, os.Remove(draft), syncDir(dir))
}

func writeDraft(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err //nolint:wrapcheck // it names the file and what was tried
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync() // the row that comes after it must never outlive it
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// syncDir makes the new name survive a power loss.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err //nolint:wrapcheck // as above
	}
	return errors.Join(d.Sync(), d.Close())
}

// removeFile takes the file away if it still holds the token.
func removeFile(path, token string) error {
	have, err := ReadFile(path)
	if err == nil && have == token {
		return os.Remove(path) //nolint:wrapcheck // it names the file
	}
	return nil // what is there, if anything, is somebody else's by now
}
