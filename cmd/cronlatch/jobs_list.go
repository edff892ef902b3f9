package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// jobsWanted says which jobs are to be listed.
type jobsWanted struct {
	terms, tag string
	filter     filter.Filter // what terms mean
}

// matches reports what needs no database; a job without state has never run.
func (w *jobsWanted) matches(j *wire.Job) bool {
	return (w.tag == "" || slices.Contains(j.Tags, w.tag)) && wire.JobIs(w.filter, j, nil)
}

func (w *jobsWanted) query() url.Values {
	query := url.Values{}
	if w.terms != "" {
		query.Set("filter", w.terms)
	}
	if w.tag != "" {
		query.Set("tag", w.tag)
	}
	return query
}

func (a *app) jobsListCommand() *cobra.Command {
	var format output.Format
	var want jobsWanted
	var server string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the jobs with their next run, their state and their last run",
		Long: "jobs list shows the jobs of the configuration (of the daemon with --server), and those that only other replicas know.\n" +
			"When the database does not answer, it shows what the configuration says.\n\n" +
			"The keys of --filter are job, tag, kind, enabled, defined, paused, state (pending, running, held, idle), and outcome and\n" +
			"reason of the last run.",
		Example: "  $ cronlatch jobs list\n  $ cronlatch jobs list --tag finance -o name\n  $ cronlatch jobs list --filter \"outcome:failed,lost -paused:true\"",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if want.filter, err = filter.ParseJobs(want.terms); err != nil {
				return usage("--filter: %w", err)
			}
			return a.listJobs(cmd.Context(), server, &want, format)
		},
	}
	cmd.Flags().StringVar(&want.terms, "filter", "", "which jobs, such as \"job:report:* outcome:failed\"; --tag is a term, too")
	cmd.Flags().StringVar(&want.tag, "tag", "", "only jobs with this tag")
	addServer(cmd, &server)
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

func (a *app) listJobs(ctx context.Context, server string, want *jobsWanted, format output.Format) error {
	remote, err := a.server(server)
	if err != nil {
		return err
	}
	if remote != nil {
		list, err := a.askJobs(ctx, server, want)
		if err != nil {
			return err
		}
		return a.showJobs(list, "the configuration of "+remote.String(), want, format)
	}
	config, err := a.loadConfig()
	if err != nil {
		return err
	}
	list, err := a.ownJobs(ctx, config, want)
	if err != nil {
		return err
	}
	return a.showJobs(list, config.Path, want, format)
}

// ownJobs are the jobs of the configuration, with what the database says of them when it answers. A filter that asks for that
// has no answer without it.
func (a *app) ownJobs(ctx context.Context, config *configs.Config, want *jobsWanted) ([]wire.Job, error) {
	alone := slices.DeleteFunc(jobViews(config.Jobs, a.Now()), func(j wire.Job) bool { return !want.matches(&j) })
	target, err := a.targetOf(config)
	if err != nil {
		return nil, err
	}
	if target.Kind == database.SQLite {
		if _, err := os.Stat(a.path(target.Path)); errors.Is(err, fs.ErrNotExist) {
			return alone, nil // nothing has ever run, and a list makes no database
		}
	}
	list, err := a.askJobs(ctx, "", want)
	if isAway(err) && ctx.Err() == nil && !wire.JobNeedsState(want.filter) {
		a.say("without the state: %v", err)
		return alone, nil
	}
	return list, err
}

// askJobs reads all pages of the list.
func (a *app) askJobs(ctx context.Context, server string, want *jobsWanted) (list []wire.Job, err error) {
	query := want.query()
	query.Set("limit", "1000")
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

func (a *app) showJobs(list []wire.Job, from string, want *jobsWanted, format output.Format) error {
	switch {
	case len(list) > 0:
	case strings.TrimSpace(want.terms) != "":
		a.say("no such jobs in %s", from)
	case want.tag != "":
		a.say("no jobs in %s have this tag", from)
	default:
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
