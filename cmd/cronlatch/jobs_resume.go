package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

func (a *app) jobsResumeCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "resume JOB...",
		Short: "End the pauses of jobs",
		Long: "The schedules of the jobs start runs again, from now on: what fell due in the pause is not made up for. It is an error\n" +
			"when one of them is not paused; the others are resumed all the same. With --tag it is an error when none is. What\n" +
			"pause-all paused, resume-all resumes.",
		Example: "  $ cronlatch jobs resume backup:db\n  $ cronlatch jobs resume --tag finance",
		Args:    f.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.resume(cmd.Context(), wire.ResumeRequest{Jobs: unique(args), Tag: f.tag}, f)
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) resumeAllCommand() *cobra.Command {
	var f jobFlags
	cmd := &cobra.Command{
		Use:   "resume-all",
		Short: "End what pause-all began",
		Long: "The schedules start runs again, from now on: what fell due in the pause is not made up for. Jobs that were paused by\n" +
			"their name stay paused. With --tag it ends the pauses of the jobs that have the tag now.",
		Example: "  $ cronlatch resume-all",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.resume(cmd.Context(), wire.ResumeRequest{Tag: f.tag, All: f.tag == ""}, f)
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) resume(ctx context.Context, r wire.ResumeRequest, f jobFlags) error {
	return a.withAPI(ctx, f.server, func(ctx context.Context, c *api) error {
		var done wire.Resumed
		if err := c.post(ctx, "/jobs/resume", r, &done); err != nil {
			return err
		}
		return a.resumed(&r, &done)
	})
}

// resumed says what was done, and what is still paused after it: that is why the jobs may not run yet.
func (a *app) resumed(r *wire.ResumeRequest, done *wire.Resumed) error {
	all := slices.ContainsFunc(done.Still, func(p wire.Pause) bool { return p.Job == nil })
	if done.All {
		a.say("%s resumed", subject(allJobs))
	}
	for _, name := range done.Jobs {
		a.say("%s resumed", subject(name))
	}
	if own := len(done.Still); r.All && own > 0 {
		a.say("still paused by name: %s; `cronlatch jobs paused` shows them", counted(own, "job"))
	}
	missing := r.All && !done.All
	switch {
	case missing:
		a.say("there is no pause of all jobs")
	case r.Tag != "" && len(done.Jobs) == 0:
		missing = true
		a.say("no job with the tag %q has a pause of its own", r.Tag)
	case r.Tag == "":
		for _, name := range done.NotPaused {
			missing = true
			a.say("%s not paused%s", subject(name), didYouMean(name, "", pausedNames(done.Still)))
		}
	}
	if all && !r.All {
		a.say("all jobs are paused; `cronlatch resume-all` ends that")
	}
	if missing {
		return exit(exitFailure)
	}
	return nil
}

func pausedNames(pauses []wire.Pause) []string {
	names := make([]string, len(pauses))
	for i := range pauses {
		names[i] = orNone(pauses[i].Job)
	}
	return names
}

func (a *app) jobsPausedCommand() *cobra.Command {
	var format output.Format
	var server string
	cmd := &cobra.Command{
		Use:     "paused",
		Short:   "List what is paused, since when, until when, and why",
		Example: "  $ cronlatch jobs paused",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withAPI(cmd.Context(), server, func(ctx context.Context, c *api) error {
				var list wire.PauseList
				if err := c.get(ctx, "/pauses", nil, &list); err != nil {
					return err
				}
				if len(list.Pauses) == 0 {
					a.say("nothing is paused")
				}
				return a.listPauses(list.Pauses, format)
			})
		},
	}
	addServer(cmd, &server)
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

// pauseName is "*" for all jobs.
func pauseName(v wire.Pause) string {
	if v.Job == nil {
		return "*"
	}
	return *v.Job
}

func (a *app) listPauses(pauses []wire.Pause, format output.Format) error {
	return output.Write(a.answer(format), output.List[wire.Pause]{Items: pauses, Name: pauseName, Columns: []output.Column[wire.Pause]{
		{Title: "JOB", Cell: pauseName},
		{Title: "SINCE", Cell: func(v wire.Pause) string { return stamp(v.From) }},
		{Title: "UNTIL", Cell: func(v wire.Pause) string { return stampOrNone(v.Until) }},
		{Title: "BY", Cell: func(v wire.Pause) string { return v.By }},
		{Title: "REASON", Cell: func(v wire.Pause) string { return v.Reason }},
	}})
}
