package main

import (
	"context"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

func (a *app) jobsCommand() *cobra.Command {
	return groupCommand("jobs", "Look at the jobs, pause and resume them",
		"  $ cronlatch jobs list\n  $ cronlatch jobs pause backup:db --until 2h",
		a.jobsListCommand(), a.jobsShowCommand(), a.jobsPauseCommand(), a.jobsResumeCommand(), a.jobsBackfillCommand(), a.jobsPausedCommand())
}

// jobPath is where the API has a job. Two names are also those of calls, and are written with an escaped letter.
func jobPath(name, more string) string {
	segment := url.PathEscape(name)
	switch name {
	case "pause":
		segment = "%70ause"
	case "resume":
		segment = "%72esume"
	}
	return "/jobs/" + segment + more
}

// nextShown is how many instants jobs show tells.
const nextShown = 3

func (a *app) jobsShowCommand() *cobra.Command {
	var format output.Format
	var server string
	cmd := &cobra.Command{
		Use: "show JOB", Short: "Tell all about one job: when it runs, what it did last, what holds it back",
		Example: "  $ cronlatch jobs show backup:db\n  $ cronlatch jobs show backup:db -o json",
		Args:    oneArg("the name of a job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAPI(cmd.Context(), server, func(ctx context.Context, c *api) error {
				var job wire.Job
				if err := c.get(ctx, jobPath(args[0], ""), nil, &job); err != nil {
					return noSuchJob(err)
				}
				next := wire.Instants{}
				if job.Defined {
					query := url.Values{"count": {strconv.Itoa(nextShown)}}
					if err := c.get(ctx, jobPath(args[0], "/next"), query, &next); err != nil {
						return noSuchJob(err)
					}
				}
				return output.WriteValue(a.answer(format), job, func() []string {
					if format == output.Name {
						return []string{job.Name}
					}
					return jobSentences(&job, &next, a.Now())
				})
			})
		},
	}
	addServer(cmd, &server)
	addOutput(cmd, &format, output.Table, output.JSON, output.YAML, output.Name)
	return cmd
}

// noSuchJob adds what to type to an answer about a job that is not there.
func noSuchJob(err error) error {
	if isProblem(err, "not_found") {
		return fail(exitFailure, "%w", err).withHint("`cronlatch jobs list` shows the jobs")
	}
	return err
}
