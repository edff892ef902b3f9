package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// formatGitHub is workflow commands, which GitHub shows as annotations.
const formatGitHub output.Format = "github"

func (a *app) validateCommand() *cobra.Command {
	var format output.Format
	var strict bool
	cmd := &cobra.Command{
		Use:   "validate [FILE...]",
		Short: "Check configuration files: every problem of every file, and the next run of each job",
		Long: "validate reports every problem of every file at once, and warns of what is probably not meant: steps that do not\n" +
			"come out even, two day fields, hours in which clocks change in the coming year, crowded minutes. When all files are\n" +
			"right it lists each job with its next run; with -o json it writes the array of problems and warnings, which may be\n" +
			"empty. Warnings do not change the exit code, unless --strict is given.",
		Example: "  $ cronlatch validate\n  $ cronlatch validate --strict -o github deploy/*.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			return a.validate(args, format, strict)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings, too")
	addOutput(cmd, &format, output.Table, output.JSON, formatGitHub)
	return cmd
}

// validate loads every file before it says anything, so that one answer has all problems.
func (a *app) validate(files []string, format output.Format, strict bool) error {
	if len(files) == 0 {
		path, _ := a.configPath()
		files = []string{path}
	}
	var loaded []*configs.Config
	var found configs.Errors
	bad := false
	for _, file := range files {
		config, problems, err := a.checkFile(a.path(file))
		if e, ok := errors.AsType[*configs.Errors](err); ok {
			problems, bad = e, true
		} else if err != nil {
			return err
		}
		if problems != nil {
			found.Add(problems)
		}
		if config != nil {
			loaded = append(loaded, config)
		}
	}
	if err := a.showFound(&found, format); err != nil {
		return err
	}
	switch {
	case bad:
		return exit(exitConfig)
	case format == output.Table:
		if err := a.showGoodFiles(loaded); err != nil {
			return err
		}
	}
	if strict && len(found.Problems) > 0 {
		return exit(exitConfig)
	}
	return nil
}

// showFound writes text to stderr, where messages belong, and what a program asked for to stdout.
func (a *app) showFound(found *configs.Errors, format output.Format) error {
	switch {
	case format == output.JSON:
		return found.WriteJSON(a.Stdout)
	case format == formatGitHub:
		return found.WriteGitHub(a.Stdout)
	case len(found.Problems) > 0:
		a.showProblems(found)
	}
	return nil
}

func (a *app) showGoodFiles(loaded []*configs.Config) error {
	var all []*jobs.Job
	var names []string
	for _, config := range loaded {
		all = append(all, config.Jobs...)
		names = append(names, config.Path)
	}
	if err := output.Write(a.answer(output.Table), output.List[wire.Job]{Items: jobViews(all, a.Now()), Columns: jobColumns(a.Now())}); err != nil {
		return err
	}
	a.say("%s: valid, %s", strings.Join(names, ", "), countedJobs(all))
	return nil
}
