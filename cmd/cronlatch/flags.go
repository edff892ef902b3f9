package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/output"
)

// choice is a flag with a closed list of values.
type choice[T ~string] struct {
	value   *T
	allowed []T
}

func (c choice[T]) String() string { return string(*c.value) }

// Type is what the help shows: the values, unless they would fill the line.
func (c choice[T]) Type() string {
	if all := strings.Join(c.words(), "|"); len(all) <= 40 {
		return all
	}
	return "word"
}

func (c choice[T]) words() []string {
	words := make([]string, len(c.allowed))
	for i, a := range c.allowed {
		words[i] = string(a)
	}
	return words
}

func (c choice[T]) Set(text string) error {
	if !slices.Contains(c.allowed, T(text)) {
		return fmt.Errorf("it must be one of %s%s", strings.Join(c.words(), ", "), didYouMean(text, "", c.words()))
	}
	*c.value = T(text)
	return nil
}

// addOutput gives the command -o.
func addOutput(cmd *cobra.Command, f *output.Format, allowed ...output.Format) {
	*f = output.Table
	cmd.Flags().VarP(choice[output.Format]{f, allowed}, "output", "o", "form of the answer")
}

func listFormats() []output.Format {
	return []output.Format{output.Table, output.JSON, output.NDJSON, output.YAML, output.Name}
}

// instant is a flag that takes an RFC 3339 time.
type instant struct{ at *time.Time }

func (i instant) String() string {
	if i.at == nil || i.at.IsZero() {
		return ""
	}
	return i.at.Format(time.RFC3339)
}

// Type is what the help shows.
func (instant) Type() string { return "time" }

func (i instant) Set(text string) error {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%q is not a time like 2026-03-07T12:00:00-05:00", text)
	}
	*i.at = at
	return nil
}

// age is a flag that takes a duration back from now, or a time.
type age struct {
	at  *time.Time
	now func() time.Time
}

func (age) String() string { return "" }

// Type is what the help shows.
func (age) Type() string { return "duration|time" }

func (a age) Set(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		*a.at = at
		return nil
	}
	d, err := configs.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is neither a duration (90m, 3d, 2w) nor a time like 2026-03-07T12:00:00-05:00", text)
	}
	*a.at = a.now().Add(-d)
	return nil
}

// noArgs refuses arguments with a sentence.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, and got %q", commandName(cmd), args[0])
	}
	return nil
}

// oneArg wants exactly one argument.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usage("%s needs %s", commandName(cmd), what)
		case len(args) > 1:
			return usage("%s takes one argument, and got %q as well", commandName(cmd), args[1])
		}
		return nil
	}
}

// someArgs wants one argument or more.
func someArgs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("%s needs %s", commandName(cmd), what)
		}
		return nil
	}
}

// atMostOneArg takes none or one.
func atMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("%s takes one argument, and got %q as well", commandName(cmd), args[1])
	}
	return nil
}

// commandName is the command as a sentence behind "cronlatch: " begins with it.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}
