package configs

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Sample is the sample configuration: two jobs, and every line explained.
//
//go:embed sample/cronlatch.yaml
var Sample string

// sampleFiles is the sample with what its jobs read.
//
//go:embed sample
var sampleFiles embed.FS

// SampleName is the name of the sample configuration in the directory given to WriteSample.
const SampleName = "cronlatch.yaml"

// WriteSample writes the sample configuration, its JSON Schema and the data of its jobs into dir, which it makes if need be, and returns
// the paths of what it wrote. It never overwrites: when one of the files is there already it writes nothing, and the
// error names the file and wraps fs.ErrExist.
func WriteSample(dir string) ([]string, error) {
	files, err := sampleTargets(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if _, err := os.Lstat(f.target); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is already there, and nothing was written: %w", f.target, fs.ErrExist)
		}
	}
	var written []string
	for _, f := range files {
		if err := f.write(); err != nil {
			return written, fmt.Errorf("write the sample: %w", err)
		}
		written = append(written, f.target)
	}
	return written, nil
}

type sampleFile struct {
	target string
	data   []byte
}

func sampleTargets(dir string) ([]sampleFile, error) {
	var files []sampleFile
	err := fs.WalkDir(sampleFiles, "sample", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel("sample", filepath.FromSlash(name))
		if err != nil {
			return err
		}
		data, err := sampleFiles.ReadFile(name)
		files = append(files, sampleFile{filepath.Join(dir, relative), data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the embedded sample: %w", err)
	}
	return append(files, sampleFile{filepath.Join(dir, SchemaName), SchemaJSON()}), nil
}

// write makes the file exclusively: one that appeared since the check is not overwritten either.
func (f sampleFile) write() error {
	if err := os.MkdirAll(filepath.Dir(f.target), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(f.target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = out.Write(f.data)
	return errors.Join(err, out.Close())
}
