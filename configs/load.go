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
	Getenv   func(string) string            // for ${VAR} and for the CRONLATCH_* variables; nil: nothing is set
	ReadFile func(string) ([]byte, error)   // for the file itself, for ${file:...} and for what it includes; nil: the file system
	Glob     func(string) ([]string, error) // for patterns of include; nil: the file system

	// Unprivileged says that who asks is not root, and that a daemon which they start is not either. Only Check looks at it.
	Unprivileged bool

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
	if o.Glob == nil {
		o.Glob = filepath.Glob
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
	c, _, err := read(path, dir, data, o)
	return c, err
}

// read is parse, with what was read for those who look closer.
func read(path, dir string, data []byte, o Options) (*Config, *content, error) {
	f := findings{source: &source{name: path}}
	text := f.screenBytes(data)
	if !f.none() {
		return nil, nil, f.errors()
	}
	root := f.parseTree(text)
	if root == nil && !f.none() {
		return nil, nil, f.errors()
	}
	var used []string
	r := &reader{findings: f, vars: variables{getenv: o.Getenv, readFile: o.ReadFile, dir: dir, used: &used}}
	c := &content{reader: r}
	c.config(root, o)
	for _, file := range used {
		c.draft.Include = append(c.draft.Include, literally.Replace(file))
	}
	if !r.none() {
		problems := r.errors()
		problems.Include = c.draft.Include
		return nil, nil, problems
	}
	config := c.draft.Config
	config.Path, config.Dir = path, dir
	return &config, c, nil
}

// content is a configuration as it was read.
type content struct {
	*reader

	draft        daemonDraft
	jobs         []*jobDraft
	unprivileged bool
	names        []string // of the jobs in all files, with the faulty ones; hooks have none of their own
}

// config reads the whole tree. Its result counts only when no problem was found.
func (c *content) config(root *node, o Options) {
	d, r := &c.draft, c.reader
	setDefaults(daemonFields(), d)
	switch {
	case root == nil || root.kind == kindNull:
		r.addAt(place{1, 1, 1}, codeEmpty, `the file is empty; a file without jobs says "jobs: {}"`)
		return
	case root.kind != kindMap:
		r.refuse(root, codeType, `the file must be a map with keys such as "jobs:", not %s`, root.describeKind())
		return
	}
	at := table[daemonDraft]{fields: daemonFields(), hint: daemonHint}.read(r, root, d)
	r.overlay(d, o)
	r.checkTLS(&d.Config, at["tls"])
	r.checkTracing(&d.Tracing, at["tracing"])
	r.readCalendars(d.calendars)
	r.databases = d.databases
	var plain jobDraft
	setDefaults(jobFields(), &plain)
	plain.policies.limits = d.limits
	in := &includer{reader: r, glob: o.Glob, read: map[string]bool{}, partial: at["include"] != nil && d.include == nil}
	main := r.defaults(d.defaults, plain)
	in.files = []jobsFile{{d.jobs, main}}
	in.follow(d, main, []string{r.source.name})
	d.Include = in.named
	c.makeJobs(in.files)
	if in.partial {
		return // what jobs miss may be in the file that is missing
	}
	c.checkLimits(at["limits"], d.Jobs)
	c.link(c.names, c.jobs, d.Jobs)
}

func (c *content) makeJobs(files []jobsFile) {
	var definitions []definition
	prints := fingerprints{}
	c.jobs, c.names = c.allDrafts(files)
	for _, draft := range c.jobs {
		job := c.build(draft)
		c.draft.Jobs, definitions = append(c.draft.Jobs, job), append(definitions, draft.definition(job, prints))
	}
	c.draft.Hash, c.draft.JobHashes = hash(jobs.ZoneVersion, definitions), eachHash(definitions)
}
