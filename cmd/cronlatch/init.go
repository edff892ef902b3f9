package main

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "init [DIRECTORY]",
		Short:   "Write a sample cronlatch.yaml and its JSON Schema; never overwrites",
		Example: "  $ cronlatch init && cronlatch validate",
		Args:    atMostOneArg,
		RunE: func(_ *cobra.Command, args []string) error {
			dir := a.path("")
			if len(args) == 1 {
				dir = a.path(args[0])
			}
			return a.init(dir)
		},
	}
}

func (a *app) init(dir string) error {
	written, err := configs.WriteSample(dir)
	switch {
	case errors.Is(err, fs.ErrExist):
		return (&failure{code: exitFailure, err: err}).withHint("`cronlatch validate` checks it; `cronlatch init DIRECTORY` writes elsewhere")
	case err != nil:
		return err
	}
	a.say("wrote %s", strings.Join(written, ", "))
	a.say("`cronlatch validate` checks it, `cronlatch serve` runs it")
	return nil
}
