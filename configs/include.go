package configs

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// The limits of what a configuration includes.
const (
	maxIncluded      = 200     // files
	maxIncludedBytes = 8 << 20 // of all of them
	maxIncludedDepth = 8
)

// includedKeys are the keys of an included file. All others are the daemon's, and there is one place for them.
//
//nolint:gochecknoglobals // a closed list
var includedKeys = []string{"version", "include", "defaults", "jobs"}

func includeFields() []field[daemonDraft] {
	return []field[daemonDraft]{{
		key: "include", doc: "Further files with jobs: names and patterns like `jobs.d/*.yaml`, relative to the file that includes them.",
		bind: func(d *daemonDraft) sink { return list{into: &d.include, nodes: &d.includeNodes} },
	}}
}

func includedFields() []field[daemonDraft] {
	return slices.DeleteFunc(daemonFields(), func(f field[daemonDraft]) bool { return !slices.Contains(includedKeys, f.key) })
}

// includedHint says more about an unknown key in an included file.
func includedHint(key, where string) string {
	for _, f := range daemonFields() {
		if f.key == key {
			return fmt.Sprintf("unknown key %q%s; it belongs in the configuration itself: an included file only has %s",
				key, where, series(includedKeys, "and"))
		}
	}
	return daemonHint(key, where)
}

// jobsFile is the jobs of one file, with what they start from.
type jobsFile struct {
	jobs     *node
	defaults jobDraft
}

// includer follows include. Its order is that of the names, so that it is the same everywhere; nothing depends on it but
// which of two jobs with one name is the first.
type includer struct {
	*reader

	glob  func(string) ([]string, error)
	files []jobsFile
	bytes int
	read  map[string]bool // names of files
	named []string        // what all files include, as patterns

	partial bool // one of the files is missing
}

// follow reads what a draft includes. stack is the names of the file that it was read from and of those that include it.
func (in *includer) follow(d *daemonDraft, defaults jobDraft, stack []string) {
	for i, name := range d.include {
		n, dir := d.includeNodes[i], filepath.Dir(stack[len(stack)-1])
		if filepath.IsAbs(name) {
			dir = ""
		}
		pattern := filepath.Join(literally.Replace(dir), name)
		if !strings.ContainsAny(name, wildcards) {
			in.named = append(in.named, literally.Replace(filepath.Join(dir, name)))
			in.file(n, filepath.Join(dir, name), defaults, stack)
			continue
		}
		in.named = append(in.named, pattern)
		for _, file := range in.matches(n, pattern) {
			in.file(n, file, defaults, stack)
		}
	}
}

const wildcards = `*?[`

// literally is for a path that is to match itself.
//
//nolint:gochecknoglobals // a strings.Replacer is immutable
var literally = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// matches is the files of a pattern, sorted. There may be none: a folder of jobs may be empty.
func (in *includer) matches(n *node, pattern string) []string {
	if strings.Contains(pattern, "**") {
		in.refuse(n, codeInclude, `"**" is not understood here: a pattern matches in one folder, like jobs.d/*.yaml`)
		return nil
	}
	files, err := in.glob(pattern)
	if err != nil {
		in.refuse(n, codeInclude, "%s is not a pattern: write a name, or one like jobs.d/*.yaml", shown(n))
		return nil
	}
	files = slices.DeleteFunc(files, hidden)
	slices.Sort(files)
	return files
}

// hidden reports a file that no pattern is meant to match: editors and Kubernetes keep their own beside the others.
func hidden(file string) bool { return strings.HasPrefix(filepath.Base(file), ".") }

// file reads one file, once.
func (in *includer) file(n *node, file string, defaults jobDraft, stack []string) {
	switch {
	case slices.Contains(stack, file):
		circle := append(slices.Clone(stack[slices.Index(stack, file):]), file)
		in.refuse(n, codeInclude, "a file cannot include itself: %s", strings.Join(circle, " -> "))
		return
	case in.read[file]:
		return
	case len(in.read) == maxIncluded:
		in.refuse(n, codeTooLarge, "more than %d files are included", maxIncluded)
		return
	case len(stack) > maxIncludedDepth:
		in.refuse(n, codeInclude, "files include each other more than %d deep", maxIncludedDepth)
		return
	}
	in.read[file] = true
	data, err := in.vars.readFile(file)
	if err != nil {
		in.partial = true
		if errors.Is(err, syscall.EISDIR) {
			in.refuse(n, codeFile, "%q is a folder; write %q for the files in it", file, filepath.Join(file, "*.yaml"))
			return
		}
		in.refuse(n, codeFile, "the file %q cannot be read: %s", file, reason(err))
		return
	}
	if in.bytes += len(data); in.bytes > maxIncludedBytes {
		in.refuse(n, codeTooLarge, "the included files have more than %d bytes (8 MiB) together, the most that is read", maxIncludedBytes)
		return
	}
	if root := in.parse(file, data); root != nil {
		in.content(file, root, defaults, stack)
	}
}

// parse makes the tree of an included file; nil when there is none, which is reported.
func (in *includer) parse(file string, data []byte) *node {
	f := findings{source: &source{name: file}}
	var root *node
	if text := f.screenBytes(data); f.none() {
		root = f.parseTree(text)
	}
	in.addSource(f.source)
	switch {
	case f.none() && (root == nil || root.kind == kindNull):
		f.addAt(place{1, 1, 1}, codeEmpty, `the file is empty; a file without jobs says "jobs: {}"`)
	case root != nil && root.kind != kindMap:
		f.addAt(root.at, codeType, `the file must be a map with keys such as "jobs:", not `+root.describeKind())
	}
	for _, p := range f.problems {
		in.add(p)
	}
	if in.dropped += f.dropped; root == nil || root.kind != kindMap {
		in.partial = true
		return nil
	}
	return root
}

func (in *includer) content(file string, root *node, defaults jobDraft, stack []string) {
	var d daemonDraft
	setDefaults(includedFields(), &d)
	at := table[daemonDraft]{fields: includedFields(), where: " in an included file", hint: includedHint}.read(in.reader, root, &d)
	in.partial = in.partial || at["include"] != nil && d.include == nil
	own := in.defaults(d.defaults, defaults)
	in.files = append(in.files, jobsFile{d.jobs, own})
	in.follow(&d, own, append(slices.Clone(stack), file))
}

// allDrafts reads the jobs of all files, sorted by name.
func (r *reader) allDrafts(files []jobsFile) (drafts []*jobDraft, names []string) {
	first := map[string]*node{}
	for _, f := range files {
		if f.jobs == nil {
			continue
		}
		for _, p := range f.jobs.pairs {
			names = append(names, p.key.text)
		}
		for _, d := range r.drafts(f.jobs, f.defaults) {
			before, twice := first[d.name]
			switch {
			case !twice:
				first[d.name] = d.key
				drafts = append(drafts, d)
			case d.chain.hookOf == nil: // that of a hook follows from that of its job
				r.refuse(d.key, codeDuplicateKey, "job %q is already defined in %s:%d; a name is unique over all files",
					abbreviate(d.name), before.file.name, before.at.line)
			}
		}
	}
	sortDrafts(drafts)
	return drafts, names
}
