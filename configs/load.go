package configs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cronlatch/cronlatch/jobs"
)

// Options is what loading takes from outside the file. The zero value reads the file alone: no variable is set.
type Options struct {
	Getenv   func(string) string          // for ${VAR} and for the CRONLATCH_* variables; nil: nothing is set
	ReadFile func(string) ([]byte, error) // for the file itself and for ${file:...}; nil: the file system

	// Flags are values given on the command line, by key: "listen", "lock.ttl". They go before the environment, and it
	// before the file. An empty value is not a flag. A problem is reported at --listen, --lock-ttl.
	Flags map[string]string
}

func (o Options) withDefaults() Options {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.ReadFile == nil {
		o.ReadFile = readBounded
	}
	return o
}

// readBounded reads a little more than the largest file there may be, so that a wrong path cannot fill the memory.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // wrapped by the callers, with what the file is for
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return data, err //nolint:wrapcheck // as above
}

// Load reads the configuration file at path. The error is *Errors when the content is at fault.
func Load(path string, o Options) (*Config, error) {
	o = o.withDefaults()
	data, err := o.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the directory of the configuration: %w", err)
	}
	return parse(path, filepath.Dir(absolute), data, o)
}

// Parse reads data as the content of the file at path. The error is always *Errors.
func Parse(path string, data []byte, o Options) (*Config, error) {
	return parse(path, filepath.Dir(path), data, o.withDefaults())
}

func parse(path, dir string, data []byte, o Options) (*Config, error) {
	f := findings{source: &source{name: path}}
	text := f.screenBytes(data)
	if !f.none() {
		return nil, f.errors()
	}
	root := f.parseTree(text)
	if root == nil && !f.none() {
		return nil, f.errors()
	}
	r := &reader{findings: f, vars: variables{getenv: o.Getenv, readFile: o.ReadFile, dir: dir}}
	config := r.config(root, o)
	if !r.none() {
		return nil, r.errors()
	}
	config.Path, config.Dir = path, dir
	return config, nil
}

// config reads the whole tree. Its result counts only when no problem was found.
func (r *reader) config(root *node, o Options) *Config {
	var d daemonDraft
	setDefaults(daemonFields(), &d)
	switch {
	case root == nil || root.kind == kindNull:
		r.addAt(place{1, 1, 1}, codeEmpty, `the file is empty; a file without jobs says "jobs: {}"`)
		return nil
	case root.kind != kindMap:
		r.refuse(root, codeType, `the file must be a map with keys such as "jobs:", not %s`, root.describe())
		return nil
	}
	at := table[daemonDraft]{fields: daemonFields(), hint: daemonHint}.read(r, root, &d)
	r.overlay(&d, o)
	r.checkTLS(&d.Config, at["tls"])
	r.readCalendars(d.calendars)
	r.databases = d.databases
	defaults := r.defaults(d.defaults)
	defaults.policies.limits = d.limits
	var definitions []definition
	drafts := r.drafts(d.jobs, defaults)
	for _, draft := range drafts {
		job := r.build(draft)
		d.Jobs, definitions = append(d.Jobs, job), append(definitions, draft.definition(job))
	}
	r.checkLimits(at["limits"], d.Jobs)
	if d.jobs != nil {
		r.link(d.jobs, drafts, d.Jobs)
	}
	d.Hash, d.JobHashes = hash(jobs.ZoneVersion, definitions), eachHash(definitions)
	return &d.Config
}
