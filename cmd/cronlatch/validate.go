package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/output"
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
	if err := output.Write(a.answer(output.Table), output.List[*jobs.Job]{Items: all, Columns: jobColumns(a.Now())}); err != nil {
		return err
	}
	a.say("%s: valid, %s", strings.Join(names, ", "), countedJobs(all))
	return nil
}

// jobColumns is a job and its next run, as validate and `jobs list` show them.
func jobColumns(now time.Time) []output.Column[*jobs.Job] {
	return []output.Column[*jobs.Job]{
		{Title: "JOB", Cell: func(j *jobs.Job) string { return j.Name }},
		{Title: "SCHEDULE", Cell: scheduleText},
		{Title: "ZONE", Cell: zoneText},
		{Title: "NEXT", Cell: func(j *jobs.Job) string { return nextText(j, now) }, Tone: func(j *jobs.Job) output.Tone {
			if !j.Enabled {
				return output.Faint
			}
			return output.Plain
		}},
		{Title: "DESCRIPTION", Cell: func(j *jobs.Job) string { return j.Description }},
	}
}

func scheduleText(j *jobs.Job) string {
	if len(j.After) > 0 {
		return chainText(j)
	}
	if j.Schedule == nil {
		return "by hand"
	}
	text := j.Schedule.String()
	if limits := j.Schedule.Limits(); limits != "" {
		text += ", " + limits
	}
	if j.Jitter > 0 {
		text += ", jitter " + durationText(j.Jitter)
	}
	return text
}

func zoneText(j *jobs.Job) string {
	if j.Schedule == nil {
		return ""
	}
	return j.Schedule.Location().String()
}

func nextText(j *jobs.Job, now time.Time) string {
	switch next := nextRun(j, now); {
	case !j.Enabled:
		return "disabled"
	case len(j.After) > 0:
		return ""
	case j.Schedule == nil:
		return "`cronlatch run " + j.Name + "`"
	case next == nil:
		return "never again"
	default:
		return next.In(j.Schedule.Location()).Format("Mon 2006-01-02 15:04:05 -07:00") + " (" + relative(next.Sub(now)) + ")"
	}
}

// nextRun is nil when the schedule never fires again, and for jobs that run after others, only by hand, or not at all.
func nextRun(j *jobs.Job, now time.Time) *time.Time {
	if !j.Enabled || j.Schedule == nil {
		return nil
	}
	next := j.Schedule.Next(now)
	if next.IsZero() {
		return nil
	}
	next = next.UTC()
	return &next
}
