package importer

import (
	"fmt"
	"strings"
	"unicode"
)

// file is a configuration file before it is written.
type file struct {
	head     []string // paragraphs of the comment at the top
	timezone string
	env      []variable // of all jobs
	pieces   []piece
	notes    int
}

// variable of an environment.
type variable struct{ name, value string }

// piece is a job, or a comment between jobs.
type piece struct {
	comments []string
	job      *job
}

// job is a definition before it is written.
type job struct {
	name     string
	from     string   // where it came from
	comments []string // what the source said above it
	notes    []string
	keys     []key // in order
	env      []variable
}

// key of a job with its value as YAML.
type key struct{ name, yaml string }

func (j *job) set(name, yaml string) { j.keys = append(j.keys, key{name, yaml}) }

func (j *job) note(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf(format, args...))
}

func (f *file) add(j *job) { f.pieces = append(f.pieces, piece{job: j}) }

func (f *file) comment(paragraphs ...string) {
	f.pieces = append(f.pieces, piece{comments: paragraphs})
}

// note is a comment between jobs about a difference in meaning.
func (f *file) note(where, format string, args ...any) {
	f.notes++
	f.comment(where + ": " + fmt.Sprintf(format, args...))
}

// refused keeps what was not imported where it stood.
func (f *file) refused(p Problem, text string) {
	comments := []string{p.where() + ", not imported: " + p.Message}
	for line := range strings.Lines(text) {
		comments = append(comments, verbatim+strings.TrimRight(line, "\r\n"))
	}
	f.comment(comments...)
}

// verbatim marks a paragraph that is not wrapped.
const verbatim = "\x00"

func (f *file) jobs() []*job {
	var all []*job
	for _, p := range f.pieces {
		if p.job != nil {
			all = append(all, p.job)
		}
	}
	return all
}

// result writes the file.
func (f *file) result() Result {
	all := f.jobs()
	f.shareEnv(all)
	w := &writer{}
	for _, paragraph := range f.head {
		w.comment("", paragraph)
	}
	w.line("version: 1")
	w.line("defaults:")
	w.line("  timezone: " + quote(f.timezone))
	w.env("  ", f.env)
	indent := "  "
	if len(all) == 0 {
		indent = ""
	} else {
		w.line("jobs:")
	}
	for i, p := range f.pieces {
		if i > 0 {
			w.line("")
		}
		for _, paragraph := range p.comments {
			w.comment(indent, paragraph)
		}
		if p.job != nil {
			w.job(p.job)
			f.notes += len(p.job.notes)
		}
	}
	if len(all) == 0 {
		w.line("jobs: {}")
	}
	return Result{YAML: w.String(), Jobs: len(all), Notes: f.notes}
}

// shareEnv moves variables that every job has with the same value to the defaults.
func (f *file) shareEnv(all []*job) {
	counts := map[variable]int{}
	for _, j := range all {
		for _, v := range j.env {
			counts[v]++
		}
	}
	if len(all) < 2 {
		return
	}
	for _, v := range all[0].env {
		if counts[v] == len(all) {
			f.env = append(f.env, v)
		}
	}
	for _, j := range all {
		var own []variable
		for _, v := range j.env {
			if counts[v] != len(all) {
				own = append(own, v)
			}
		}
		j.env = own
	}
}

// writer builds the text.
type writer struct{ strings.Builder }

func (w *writer) line(text string) { w.WriteString(text + "\n") }

func (w *writer) job(j *job) {
	for _, line := range j.comments {
		w.comment("  ", verbatim+line)
	}
	w.comment("  ", j.from)
	for _, note := range j.notes {
		w.comment("  ", "note: "+note)
	}
	w.line("  " + quoteKey(j.name) + ":")
	for _, k := range j.keys {
		w.line("    " + k.name + ":" + indented(afterColon(k.yaml), "      "))
	}
	w.env("    ", j.env)
}

// afterColon puts a blank in front of what stands on the line of its key.
func afterColon(yaml string) string {
	if strings.HasPrefix(yaml, "\n") {
		return yaml
	}
	return " " + yaml
}

func (w *writer) env(indent string, env []variable) {
	if len(env) == 0 {
		return
	}
	w.line(indent + "env:")
	for _, v := range env {
		w.line(indent + "  " + quoteKey(v.name) + ": " + quote(literalDollars(v.value)))
	}
}

const commentWidth = 118

// comment writes a paragraph behind "#", wrapped unless it is verbatim. An empty one is an empty line.
func (w *writer) comment(indent, paragraph string) {
	if text, ok := strings.CutPrefix(paragraph, verbatim); ok {
		w.line(strings.TrimRight(indent+"# "+harmless(text), " \t"))
		return
	}
	if paragraph == "" {
		w.line("")
		return
	}
	line := indent + "#"
	for word := range strings.FieldsSeq(harmless(paragraph)) {
		if len(line)+1+len(word) > commentWidth && len(line) > len(indent)+4 {
			w.line(line)
			line = indent + "#  "
		}
		line += " " + word
	}
	w.line(line)
}

// harmless replaces what would end a comment, or act on a terminal.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
