//go:build failpoints

package failpoint

import (
	"context"
	"path"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A point of a statement is step.statement:before or step.statement:after. The step is the function that began the
// transaction (plan, claim, finish ...), "alone" outside of one; the statement is the field of the table that has its text,
// BEGIN or COMMIT. What is in no table is package locking's, or unnamed: a statement in a transaction, and one alone that
// writes and is not of the tables that have nothing to do with runs.
const (
	Alone   = "alone"
	locking = "locking"
	unnamed = "unnamed"
)

// statement is a text with a question mark wherever an argument was written into it.
type statement struct {
	name  string
	parts []string
	fixed int // bytes that are not arguments: of two that fit, the longer one is meant
}

//nolint:gochecknoglobals // what is known is a property of the program
var (
	argument = regexp.MustCompile(`\?[0-9]*`)

	mu    sync.Mutex
	known []statement
)

// Statements makes the statements of tables known: structs whose string fields are SQL texts. Those of a type thingQueries
// are named thing_FIELD, those of the type queries FIELD, and those of another package than scheduler PACKAGE_FIELD. The same
// text twice has both names. Each name is recorded as "known NAME".
func Statements(tables ...any) {
	mu.Lock()
	defer mu.Unlock()
	for _, table := range tables {
		know(reflect.Indirect(reflect.ValueOf(table)))
	}
}

func know(v reflect.Value) {
	prefix := ""
	if thing, ok := strings.CutSuffix(v.Type().Name(), "Queries"); ok {
		prefix = thing + "_"
	} else if pkg := path.Base(v.Type().PkgPath()); pkg != "scheduler" {
		prefix = pkg + "_"
	}
	for i := range v.NumField() {
		name, text := prefix+v.Type().Field(i).Name, v.Field(i).String()
		if text == "" {
			continue
		}
		parts := argument.Split(text, -1)
		same := slices.IndexFunc(known, func(s statement) bool { return slices.Equal(s.parts, parts) })
		switch {
		case same < 0:
			known = append(known, statement{name, parts, len(strings.Join(parts, ""))})
			note("known " + name)
		case !slices.Contains(strings.Split(known[same].name, "+"), name):
			known[same].name += "+" + name
		}
	}
}

// Statement is the name of a text as the driver gets it.
func Statement(query string) string {
	mu.Lock()
	defer mu.Unlock()
	var best statement
	for _, s := range known {
		if s.fixed > best.fixed && s.fits(query) {
			best = s
		}
	}
	return best.name
}

func (s *statement) fits(query string) bool {
	first, last := s.parts[0], s.parts[len(s.parts)-1]
	if len(s.parts) == 1 {
		return query == first
	}
	if !strings.HasPrefix(query, first) || !strings.HasSuffix(query, last) || len(query) < s.fixed {
		return false
	}
	rest := query[len(first) : len(query)-len(last)]
	for _, part := range s.parts[1 : len(s.parts)-1] {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			return false
		}
		rest = after
	}
	return true
}

// foreign are tables that the scheduler never writes: what package locking, auth and migrations say there is theirs.
var foreign = regexp.MustCompile(`\b(distributed_locks|fencing_tokens|lock_waiters|api_tokens|schema_migrations)\b`) //nolint:gochecknoglobals // a constant

// writes is how a statement begins or goes on that changes rows.
var writes = regexp.MustCompile(`(?i)\b(INSERT INTO|DELETE FROM|UPDATE\s+\w+\s+(AS\s+\w+\s+)?SET)\b`) //nolint:gochecknoglobals // a constant

// Point is the name of a statement in a step, "" when it is of no interest: of no table, in no step, and a reading one.
func Point(step, query string) string {
	name := Statement(query)
	switch {
	case name == "" && step == "" && (!writes.MatchString(query) || foreign.MatchString(query)):
		return ""
	case name == "" && step == "":
		return Alone + "." + unnamed
	case step == "":
		step = Alone
	case name == "" && (strings.Contains(query, "distributed_locks") || strings.Contains(query, "fencing_tokens")):
		name = locking
	case name == "":
		name = unnamed
	}
	return step + "." + name
}

type stepKey struct{}

// Step marks the context of a transaction with the name of the function that begins it: the caller of Step's caller.
func Step(ctx context.Context) context.Context {
	pcs := make([]uintptr, 1)
	runtime.Callers(3, pcs) // of Callers itself, Step and its caller
	frame, _ := runtime.CallersFrames(pcs).Next()
	return context.WithValue(ctx, stepKey{}, frame.Function[strings.LastIndexByte(frame.Function, '.')+1:])
}

// StepOf is the mark of a context, "" when it has none.
func StepOf(ctx context.Context) string {
	step, _ := ctx.Value(stepKey{}).(string)
	return step
}
