package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/scheduler"
)

func (a *app) jobsResumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume JOB...",
		Short: "End the pauses of jobs",
		Long: "The schedules of the jobs start runs again, from now on: what fell due in the pause is not made up for. It is an error\n" +
			"when one of them is not paused; the others are resumed all the same. What pause-all paused, resume-all resumes.",
		Example: "  $ cronlatch jobs resume backup:db",
		Args:    someArgs("the name of a job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPauses(cmd.Context(), func(ctx context.Context, p *scheduler.Pauses) error {
				return a.resume(ctx, p, unique(args))
			})
		},
	}
}

func (a *app) resumeAllCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume-all",
		Short: "End what pause-all began",
		Long: "The schedules start runs again, from now on: what fell due in the pause is not made up for. Jobs that were paused by\n" +
			"their name stay paused.",
		Example: "  $ cronlatch resume-all",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withPauses(cmd.Context(), func(ctx context.Context, p *scheduler.Pauses) error {
				return a.resume(ctx, p, []string{allJobs})
			})
		},
	}
}

// resume ends pauses, and says what is still paused after it: that is why the jobs may not run yet.
func (a *app) resume(ctx context.Context, p *scheduler.Pauses, names []string) error {
	resumed, err := p.Resume(ctx, names, requester())
	if err != nil {
		return err
	}
	still, err := p.Active(ctx)
	if err != nil {
		return err
	}
	all := slices.ContainsFunc(still, func(s scheduler.Pause) bool { return s.Job == allJobs })
	for _, name := range resumed {
		a.say("%s resumed", subject(name))
	}
	if own := len(still); slices.Contains(names, allJobs) && own > 0 {
		a.say("still paused by name: %s; `cronlatch jobs paused` shows them", counted(own, "job"))
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(resumed, name) })
	for _, name := range missing {
		a.say("%s not paused%s", subject(name), didYouMean(name, "", pausedNames(still)))
	}
	if all && !slices.Contains(names, allJobs) {
		a.say("all jobs are paused; `cronlatch resume-all` ends that")
	}
	if len(missing) > 0 {
		return exit(exitFailure)
	}
	return nil
}

func pausedNames(pauses []scheduler.Pause) []string {
	names := make([]string, len(pauses))
	for i := range pauses {
		names[i] = pauses[i].Job
	}
	return names
}

func (a *app) jobsPausedCommand() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "paused",
		Short:   "List what is paused, since when, until when, and why",
		Example: "  $ cronlatch jobs paused",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withPauses(cmd.Context(), func(ctx context.Context, p *scheduler.Pauses) error {
				active, err := p.Active(ctx)
				if err != nil {
					return err
				}
				if len(active) == 0 {
					a.say("nothing is paused")
				}
				return a.listPauses(active, format)
			})
		},
	}
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

// pauseView is a pause as commands print it.
type pauseView struct {
	Job    *string    `json:"job"` // null: all jobs
	From   time.Time  `json:"from"`
	Until  *time.Time `json:"until"` // null: until it is resumed
	By     string     `json:"by"`
	Reason string     `json:"reason"`
}

// name is "*" for all jobs.
func (v pauseView) name() string {
	if v.Job == nil {
		return "*"
	}
	return *v.Job
}

func (a *app) listPauses(pauses []scheduler.Pause, format output.Format) error {
	views := make([]pauseView, len(pauses))
	for i := range pauses {
		p := &pauses[i]
		views[i] = pauseView{Job: orNull(p.Job), From: p.From.UTC(), By: p.By, Reason: p.Reason}
		if !p.Until.IsZero() {
			views[i].Until = new(p.Until.UTC())
		}
	}
	return output.Write(a.answer(format), output.List[pauseView]{Items: views, Name: pauseView.name, Columns: []output.Column[pauseView]{
		{Title: "JOB", Cell: pauseView.name},
		{Title: "SINCE", Cell: func(v pauseView) string { return stamp(v.From) }},
		{Title: "UNTIL", Cell: func(v pauseView) string { return stampOrNone(v.Until) }},
		{Title: "BY", Cell: func(v pauseView) string { return v.By }},
		{Title: "REASON", Cell: func(v pauseView) string { return v.Reason }},
	}})
}
