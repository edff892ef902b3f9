package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
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

func (a *app) jobsListCommand() *cobra.Command {
	var format output.Format
	var tag, server string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the jobs with their next run, their state and their last run",
		Long: "jobs list shows the jobs of the configuration (of the daemon with --server), and those that only other replicas know.\n" +
			"When the database does not answer, it shows what the configuration says.",
		Example: "  $ cronlatch jobs list\n  $ cronlatch jobs list --tag finance -o name",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.listJobs(cmd.Context(), server, tag, format)
		},
	}
	cmd.Flags().StringVar(&tag, "tag", "", "only jobs with this tag")
	addServer(cmd, &server)
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

func (a *app) listJobs(ctx context.Context, server, tag string, format output.Format) error {
	remote, err := a.server(server)
	if err != nil {
		return err
	}
	if remote != nil {
		list, err := a.askJobs(ctx, server, tag)
		if err != nil {
			return err
		}
		return a.showJobs(list, "the configuration of "+remote.String(), tag, format)
	}
	config, err := a.loadConfig()
	if err != nil {
		return err
	}
	list, err := a.ownJobs(ctx, config, tag)
	if err != nil {
		return err
	}
	return a.showJobs(list, config.Path, tag, format)
}

// ownJobs are the jobs of the configuration, with what the database says of them when it answers.
func (a *app) ownJobs(ctx context.Context, config *configs.Config, tag string) ([]wire.Job, error) {
	alone := slices.DeleteFunc(jobViews(config.Jobs, a.Now()), func(j wire.Job) bool { return tag != "" && !slices.Contains(j.Tags, tag) })
	target, err := a.targetOf(config)
	if err != nil {
		return nil, err
	}
	if target.Kind == database.SQLite {
		if _, err := os.Stat(a.path(target.Path)); errors.Is(err, fs.ErrNotExist) {
			return alone, nil // nothing has ever run, and a list makes no database
		}
	}
	list, err := a.askJobs(ctx, "", tag)
	if isAway(err) && ctx.Err() == nil {
		a.say("without the state: %v", err)
		return alone, nil
	}
	return list, err
}

// askJobs reads all pages of the list.
func (a *app) askJobs(ctx context.Context, server, tag string) (list []wire.Job, err error) {
	query := url.Values{"limit": {"1000"}}
	if tag != "" {
		query.Set("tag", tag)
	}
	err = a.withAPI(ctx, server, func(ctx context.Context, c *api) error {
		for {
			var page wire.JobPage
			if err := c.get(ctx, "/jobs", query, &page); err != nil {
				return err
			}
			list = append(list, page.Jobs...)
			if page.NextCursor == "" {
				return nil
			}
			query.Set("cursor", page.NextCursor)
		}
	})
	return list, settled(err)
}

func (a *app) showJobs(list []wire.Job, from, tag string, format output.Format) error {
	switch {
	case len(list) == 0 && tag != "":
		a.say("no jobs in %s have this tag", from)
	case len(list) == 0:
		a.say("no jobs in %s", from)
	}
	columns := stateColumns(a.Now())
	if !slices.ContainsFunc(list, func(j wire.Job) bool { return j.State != nil }) {
		columns = jobColumns(a.Now())
	}
	return output.Write(a.answer(format), output.List[wire.Job]{
		Items: list, Columns: columns, Name: func(j wire.Job) string { return j.Name },
	})
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
