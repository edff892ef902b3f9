package migrations

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"

	"github.com/uptrace/bun/dialect"
)

//go:embed postgres/*.sql sqlite/*.sql
var embeddedFiles embed.FS

// file is one migration as the binary has it.
type file struct {
	version             int
	name, checksum, sql string
}

func (f file) String() string { return label(f.version, f.name) }

func label(version int, name string) string { return fmt.Sprintf("%04d_%s", version, name) }

var fileName = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.sql$`)

// Fingerprint changes whenever a migration of the given database changes; tests name their template databases by it.
func Fingerprint(d dialect.Name) (string, error) {
	files, err := embedded(d)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, f := range files {
		sum.Write([]byte(f.checksum))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func embedded(d dialect.Name) ([]file, error) {
	folder := "postgres"
	if d == dialect.SQLite {
		folder = "sqlite"
	}
	sub, err := fs.Sub(embeddedFiles, folder)
	if err != nil {
		return nil, fmt.Errorf("opening the embedded migrations: %w", err)
	}
	return read(sub)
}

// read returns the files of a folder in order and insists on the numbers 1, 2, 3 ...
func read(folder fs.FS) ([]file, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("listing the migrations: %w", err)
	}
	files := make([]file, 0, len(entries))
	for i, e := range entries {
		parts := fileName.FindStringSubmatch(e.Name())
		if parts == nil {
			return nil, fmt.Errorf("migrations: %s is not named like 0001_initial.sql", e.Name())
		}
		if version, err := strconv.Atoi(parts[1]); err != nil || version != i+1 {
			return nil, fmt.Errorf("migrations: %s should have the number %04d", e.Name(), i+1)
		}
		content, err := fs.ReadFile(folder, e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading a migration: %w", err)
		}
		files = append(files, newFile(i+1, parts[2], content))
	}
	return files, nil
}

// newFile ignores how line ends were checked out: it would make a changed file of every one.
func newFile(version int, name string, content []byte) file {
	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	sum := sha256.Sum256(content)
	return file{version: version, name: name, checksum: hex.EncodeToString(sum[:]), sql: string(content)}
}
