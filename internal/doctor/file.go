package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cronlatch/cronlatch/internal/database"
)

// file looks at the file of SQLite without opening it as a database; nil on PostgreSQL.
func (p *Patient) file() *fileFacts {
	if p.Target.Kind != database.SQLite {
		return nil
	}
	f := &fileFacts{Path: p.Target.Path}
	dir := filepath.Dir(f.Path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		f.NoFolder, f.Err = true, err
		return f
	}
	f.Network, f.Err = database.NetworkFileSystem(dir)
	f.Overlay, f.Memory = onOverlay(dir), inMemory(dir)
	f.FreeBytes, f.FreeErr = freeBytes(dir)
	if f.Err != nil {
		f.Err = fmt.Errorf("looking at the folder of %s: %w", f.Path, f.Err)
		return f
	}
	f.InFolder = writable(dir)
	info, err := os.Stat(f.Path)
	if err != nil {
		f.Err = err
		return f
	}
	f.Mode = info.Mode()
	if !f.Mode.IsRegular() {
		return f // a pipe would wait for a writer
	}
	if f.Access = writable(f.Path); f.Access == nil {
		f.Header, f.Err = headerOf(f.Path)
	}
	return f
}

// untouched reports whether to open the file would make or change it.
func (f *fileFacts) untouched() bool {
	return errors.Is(f.Err, fs.ErrNotExist) || f.Header == headerEmpty || f.Header == headerRollback
}

// headerOf reads the beginning of a file: the magic text, and whether the journal is the write-ahead log.
func headerOf(path string) (header, error) {
	file, err := os.Open(path) //nolint:gosec // the user names the database
	if err != nil {
		return headerForeign, err
	}
	defer func() { _ = file.Close() }()
	const magic, wal = "SQLite format 3\x00", 2
	first := make([]byte, len(magic)+4)
	switch n, err := io.ReadFull(file, first); {
	case n == 0 && errors.Is(err, io.EOF):
		return headerEmpty, nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return headerForeign, fmt.Errorf("reading %s: %w", path, err)
	case !bytes.HasPrefix(first, []byte(magic)):
		return headerForeign, nil
	case first[18] != wal || first[19] != wal:
		return headerRollback, nil
	default:
		return headerWAL, nil
	}
}
