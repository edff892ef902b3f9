package importer

import "fmt"

// Source is one file.
type Source struct {
	Name string // as it is shown in comments and problems
	Data []byte
}

// MaxBytes is the longest source, and the longest configuration file.
const MaxBytes = 1 << 20

// Result is what became of the sources.
type Result struct {
	YAML     string
	Jobs     int
	Skipped  int // manifests of another kind
	Notes    int // comments of YAML that say where the meaning differs
	Problems []Problem
}

// Problem is something that was not imported.
type Problem struct {
	File    string
	Line    int // from 1
	Message string
}

// String is the problem as editors and compilers write theirs.
func (p Problem) String() string { return fmt.Sprintf("%s: %s", p.where(), p.Message) }

func (p Problem) where() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

func refuse(s Source, line int, format string, args ...any) Problem {
	return Problem{File: s.Name, Line: line, Message: fmt.Sprintf(format, args...)}
}
