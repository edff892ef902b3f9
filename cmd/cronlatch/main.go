// Command cronlatch is the daemon and its command line.
//
// main translates: arguments and signals come in, an exit code goes out. Each subcommand is a file named after it;
// run in process.go executes one command line with everything that it sees of the world passed in, so that tests are
// that world. exitcodes.go is the one table of exit codes, failure.go the one place where an error becomes one of
// them.
//
// Guarantees: data goes to stdout and messages to stderr behind "cronlatch: "; what a user wrote is shown and never
// obeyed by the terminal; a client command gives up within 5 s when the database does not answer; the first Ctrl-C is
// polite and the second one is not, and the program says so.
//
// Not guaranteed: that a table keeps its columns from version to version. Scripts use -o json.
//
// Two hidden commands, supervise and exec-child, are processes that the daemon starts for itself. They are dispatched
// before anything else is set up: a supervisor must not share signal handling, flags or memory with a command line.
//
// Tests call run; those that need a process of their own start the test binary, which becomes cronlatch when its
// environment says so.
package main

import (
	"context"
	"os"
	"time"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/supervisor"
)

// patience of the client commands; see process.
const patience = 5 * time.Second

func main() { os.Exit(start(os.Args, patience)) }

// start is main with a result.
func start(args []string, patience time.Duration) int {
	if len(args) > 1 {
		switch args[1] {
		case "supervise":
			return supervisor.Main(args[2:])
		case "exec-child":
			return supervisor.ChildMain(args[2:])
		}
	}
	ctx, hurry, stop := endings(context.Background())
	defer stop()
	return run(ctx, process{
		Args: args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Terminal: output.IsTerminal(os.Stdout),
		Getenv: os.Getenv, Now: time.Now, Patience: patience, Hurry: hurry,
	})
}
