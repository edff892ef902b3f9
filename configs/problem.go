package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The codes of problems. They are stable: scripts may match on them.
const (
	codeAlias        = "alias"         // an alias without anchor, or a merge of something that is not a map
	codeChannel      = "channel"       // the name of a channel, or one that nothing defines
	codeChoice       = "choice"        // not one of the values that the key knows
	codeConflict     = "conflict"      // two keys that exclude each other
	codeDocuments    = "documents"     // more than one YAML document
	codeDuplicateKey = "duplicate-key" // the same key twice in one map
	codeDatabase     = "database"      // the name of a database of sql jobs
	codeDuration     = "duration"      // not a duration
	codeEmpty        = "empty"         // a key, a list item or the file without a value
	codeEncoding     = "encoding"      // not UTF-8, or with control characters
	codeEnv          = "env"           // the name or the value of an environment variable of a job
	codeFile         = "file"          // ${file:...} could not be read
	codeHost         = "host"          // not the name of a host
	codeHTTP         = "http"          // a request that cannot be made
	codeInclude      = "include"       // a file that cannot be included
	codeJobName      = "job-name"      // a name that could not be locked
	codeLabel        = "label"         // not the name or the value of a label
	codeListen       = "listen"        // not an address
	codeParam        = "param"         // a parameter that no run could be given
	codeRange        = "range"         // a number or a duration outside its bounds
	codeRequired     = "required"      // a key that must be there is not
	codeResource     = "resource"      // a name that cannot be locked
	codeOffset       = "resource-offset"
	codeSQL          = "sql"       // a text that is no statement for a job
	codeSyntax       = "syntax"    // not YAML, or YAML that is refused on purpose
	codeTemplate     = "template"  // {{ ... }} in a command, a request or a statement
	codeTooLarge     = "too-large" // size, nesting or number of values
	codeType         = "type"      // a value of another type than the key's
	codeUnknownKey   = "unknown-key"
	codeURL          = "url"      // not an address
	codeUser         = "user"     // not an account, or root without allow_root
	codeVariable     = "variable" // ${...} that is unset or not understood
	codeVersion      = "version"
)

// maxProblems bounds a report; what is beyond it is counted in one last problem.
const maxProblems = 100

// Problem is one thing that is wrong, and where.
type Problem struct {
	File    string `json:"file"`              // as it was given to Load; the name of a variable or flag when Line is 0
	Line    int    `json:"line,omitempty"`    // from 1; 0 when the value did not come from the file
	Column  int    `json:"column,omitempty"`  // from 1, in characters
	Length  int    `json:"length,omitempty"`  // in characters, on this line
	Message string `json:"message"`           // one line, without a final dot
	Code    string `json:"code"`              // stable
	Warning bool   `json:"warning,omitempty"` // the file can be loaded all the same
	Snippet string `json:"snippet,omitempty"` // the line and the caret line, joined by a newline; "" when there is no line to show
}

// String is the problem's first line: position, message, code.
func (p Problem) String() string {
	message := p.Message
	if p.Warning {
		message = "warning: " + message
	}
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s  [%s]", p.File, message, p.Code)
	}
	return fmt.Sprintf("%s:%d:%d: %s  [%s]", p.File, p.Line, p.Column, message, p.Code)
}

// Errors is everything that is wrong with a configuration, sorted by position. It is never empty. Those that Check gives
// beside a configuration are warnings.
//
//nolint:errname // it is several errors, and reads as configs.Errors
type Errors struct {
	Problems []Problem
	Include  []string // as in Config, as far as it could be read
	more     int      // problems beyond maxProblems
}

// Add appends what was found in another file.
func (e *Errors) Add(other *Errors) {
	e.Problems, e.more = append(e.Problems, other.Problems...), e.more+other.more
}

// Error is the whole report as WriteText writes it, without the final newline.
func (e *Errors) Error() string {
	var b strings.Builder
	for _, p := range e.Problems {
		b.WriteString(p.String())
		b.WriteByte('\n')
		if p.Snippet != "" {
			b.WriteString(p.Snippet)
			b.WriteByte('\n')
		}
	}
	b.WriteString(e.summary())
	return b.String()
}

func (e *Errors) summary() string {
	warnings := 0
	for _, p := range e.Problems {
		if p.Warning {
			warnings++
		}
	}
	errs := len(e.Problems) - warnings
	switch {
	case errs == 0:
		return e.total(warnings+e.more, "warning") + "."
	case warnings == 0:
		return e.total(errs+e.more, "error") + ". Nothing was loaded."
	default:
		return count(errs, "error") + " and " + e.total(warnings+e.more, "warning") + ". Nothing was loaded."
	}
}

// total is a number of problems and where they are.
func (e *Errors) total(n int, noun string) string {
	files, others := map[string]bool{}, map[string]bool{}
	for _, p := range e.Problems {
		switch {
		case p.Line > 0:
			files[p.File] = true
		case strings.HasPrefix(p.File, "--"):
			others["the flags"] = true
		default:
			others["the environment"] = true
		}
	}
	var places []string
	if len(files) > 0 {
		places = append(places, count(len(files), "file"))
	}
	for _, other := range []string{"the environment", "the flags"} {
		if others[other] {
			places = append(places, other)
		}
	}
	total := count(n, noun)
	if e.more > 0 {
		total += fmt.Sprintf(" (%d shown)", len(e.Problems))
	}
	return total + " in " + strings.Join(places, " and ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// findings collects problems. What is beyond maxFindings is only counted: a file of a megabyte has room for more
// problems than are worth sorting.
type findings struct {
	source   *source
	included []*source
	problems []Problem
	dropped  int
}

const maxFindings = 1_000

func (f *findings) add(p Problem) {
	if f.full() {
		f.dropped++
		return
	}
	f.problems = append(f.problems, p)
}

func (f *findings) full() bool { return len(f.problems) == maxFindings }

// only makes a problem the only one: the others follow from it, or from a file that was never meant to be read.
func (f *findings) only(p Problem) {
	f.problems, f.dropped = []Problem{p}, 0
}

func (f *findings) addAt(at place, code, message string) {
	f.add(f.source.problem(at, code, message))
}

func (f *findings) none() bool { return len(f.problems) == 0 }

// errors sorts, removes repetitions (an alias shows the same place again), bounds the report and adds the snippets.
func (f *findings) errors() *Errors {
	problems := f.problems
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(min(a.Line, 1), min(b.Line, 1)), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	problems = slices.Compact(problems)
	shown := min(len(problems), maxProblems)
	report := &Errors{Problems: problems[:shown:shown], more: len(problems) - shown + f.dropped}
	for _, p := range report.Problems {
		if slices.Contains(codesOfText(), p.Code) {
			f.named(p.File).broken = true
		}
	}
	for i, p := range report.Problems {
		if s := f.named(p.File); p.Code == codeAlias && !slices.Equal(s.mask(p.Line), s.line(p.Line)) {
			report.Problems[i].Message = "an alias that repeats nothing, or not a map; put a text that begins with * in quotes"
		}
		report.Problems[i].Message = f.named(p.File).withoutHidden(report.Problems[i])
		report.Problems[i].Snippet = f.named(p.File).snippet(p.Line, p.Column, p.Length)
	}
	return report
}

// codesOfText are those of files that are refused before there are values.
func codesOfText() []string {
	return []string{codeSyntax, codeEncoding, codeDocuments, codeTooLarge, codeAlias, codeDuplicateKey}
}

// addSource makes the lines of a further file known.
func (f *findings) addSource(s *source) { f.included = append(f.included, s) }

// named is the file of a problem.
func (f *findings) named(name string) *source {
	for _, s := range f.included {
		if s.name == name {
			return s
		}
	}
	return f.source
}
