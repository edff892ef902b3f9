package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/cronlatch/cronlatch/internal/output"
)

// process is everything that a command sees of the world, so that a test can be the world.
type process struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stdout is a terminal: text from users must not act on it
	Getenv         func(string) string
	Dir            string           // where relative paths start; "" is the working directory
	Now            func() time.Time // for what is shown; decisions are made by the database's clock
	// Patience is how long a client command waits for the database or the daemon before it ends with exitUnavailable. A
	// daemon waits; a person or a script wants to know.
	Patience time.Duration
	// Hurry is closed when the user asks a second time for the end. nil never is.
	Hurry <-chan struct{}
}

// app is one command on its way.
type app struct {
	process
	global globalFlags
}

// globalFlags are understood by every command.
type globalFlags struct {
	config      string
	databaseURL string
	color       output.ColorMode
}

// run executes one command line and returns the exit code. The context ends when the user asks for the end.
func run(ctx context.Context, p process) int {
	a := &app{process: p, global: globalFlags{color: output.ColorAuto}}
	root := a.rootCommand()                     //nolint:contextcheck // the commands get it from ExecuteContext
	root.SetArgs(append([]string{}, p.Args...)) // never nil: cobra would take os.Args
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	return a.report(root.ExecuteContext(ctx))
}

// say writes one message for a person to stderr. Whatever is in it, it is one line that a terminal only shows.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintln(a.Stderr, "cronlatch: "+output.Clean(fmt.Sprintf(format, args...)))
}

// path is a file named by the user or by default.
func (a *app) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.Dir, name)
}

// answer is how a list goes to stdout.
func (a *app) answer(f output.Format) output.Options {
	return output.Options{Writer: a.Stdout, Format: f, Color: a.global.color.Enabled(a.Terminal, a.Getenv)}
}
