package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/output"
)

// failure is an error together with the exit code that it means and what to do next.
type failure struct {
	code int
	err  error  // nil: everything was said already
	hint string // a sentence for the next line; may be empty
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// withHint adds what to do next.
func (f *failure) withHint(format string, args ...any) *failure {
	f.hint = fmt.Sprintf(format, args...)
	return f
}

func fail(code int, format string, args ...any) *failure {
	return &failure{code: code, err: fmt.Errorf(format, args...)}
}

// usage is a mistake in the command line.
func usage(format string, args ...any) *failure { return fail(exitUsage, format, args...) }

// exit ends the command with a code and says no more.
func exit(code int) error {
	if code == exitOK {
		return nil
	}
	return &failure{code: code}
}

// report says what went wrong and gives the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	f := classify(err)
	if problems, ok := errors.AsType[*configs.Errors](err); ok {
		a.showProblems(problems)
	} else if f.err != nil {
		a.say("%v", f.err)
	}
	if f.hint != "" {
		a.say("%s", f.hint)
	}
	return f.code
}

// showProblems writes the problems of a configuration as they are, without the prefix: editors jump to file:line:column
// at the start of a line.
func (a *app) showProblems(problems *configs.Errors) {
	var b bytes.Buffer
	_ = problems.WriteText(&b)
	_, _ = fmt.Fprint(a.Stderr, output.CleanLines(b.String()))
}

// classify finds the exit code of an error that nobody gave one.
func classify(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	switch {
	case isProblems(err) || errors.Is(err, database.ErrRefused):
		return &failure{code: exitConfig, err: err}
	case errors.Is(err, context.Canceled):
		return fail(exitInterrupted, "interrupted")
	case database.Denied(err):
		return (&failure{code: exitDenied, err: err}).withHint("%s", database.Remedy(err))
	case database.Unavailable(err) || errors.Is(err, context.DeadlineExceeded):
		return &failure{code: exitUnavailable, err: err}
	default:
		return &failure{code: exitFailure, err: err}
	}
}

// settled gives an error its meaning here, so that no caller finds another one for it.
func settled(err error) error {
	if err == nil {
		return nil
	}
	return classify(err)
}

func isProblems(err error) bool {
	_, ok := errors.AsType[*configs.Errors](err)
	return ok
}
