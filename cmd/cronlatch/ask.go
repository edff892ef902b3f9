package main

import (
	"bufio"
	"context"
	"os"
	"strings"

	"github.com/cronlatch/cronlatch/internal/output"
)

// canAsk reports whether there is a person who can answer.
func (a *app) canAsk() bool {
	in, ok := a.Stdin.(*os.File)
	return ok && output.IsTerminal(in)
}

// ask asks a person on the terminal whether to go on; undone is what is said otherwise. A script is not decided for.
func (a *app) ask(ctx context.Context, question, undone string) error {
	if !a.canAsk() {
		return usage("nobody can be asked without a terminal; %s", undone).withHint("--yes goes on without asking")
	}
	a.say("%s", question)
	answers := make(chan string, 1)
	go func() { // a read from a terminal cannot be called off; it ends with the process
		line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer == "yes" || answer == "y" {
			return nil
		}
		return fail(exitFailure, "%s", undone)
	case <-ctx.Done():
		return fail(exitInterrupted, "interrupted; %s", undone)
	}
}
