package main

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// logFormat is a form of a run's output.
type logFormat string

const (
	logText   logFormat = "text"   // what the job printed
	logJSON   logFormat = "json"   // an array of the API's pieces
	logNDJSON logFormat = "ndjson" // the API's pieces, one a line
)

// logFlags are the flags of logs.
type logFlags struct {
	server string
	follow bool
	offset int64
	format logFormat
}

func (a *app) logsCommand() *cobra.Command {
	f := logFlags{format: logText}
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "Show what a run has printed, also while it runs on another replica",
		Long: "RUN is a run's id, or the name of a job: then it is its newest run that was started. With -f it shows new output\n" +
			"as it comes, goes on with the next attempt when the run fails and is tried again, and ends with the run. An\n" +
			"outage of the server or the database is waited for. Ctrl-C ends the command, not the run. The first 64 KiB and the\n" +
			"last 192 KiB of an output are kept; what is missing between is told on stderr.",
		Example: "  $ cronlatch logs backup:db -f\n  $ cronlatch logs 1207 --offset 65536",
		Args:    oneArg("a run's id or the name of a job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case args[0] == "":
				return usage("RUN is empty: it is a run's id or the name of a job")
			case f.offset < 0:
				return usage("--offset must not be negative")
			case f.follow && f.format == logJSON:
				return usage("-o json is one answer, which -f has no end for; -o ndjson gives an object for each piece")
			}
			return a.withAPI(cmd.Context(), f.server, func(calls context.Context, c *api) error {
				return a.logs(cmd.Context(), calls, c, args[0], f) // with -f, from here on the user's own patience counts
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on until the run has ended")
	flags.Int64Var(&f.offset, "offset", 0, "the first byte that is wanted")
	flags.VarP(choice[logFormat]{&f.format, []logFormat{logText, logJSON, logNDJSON}}, "output", "o", "form of the answer")
	addServer(cmd, &f.server)
	return cmd
}

// logs shows the output of one run; calls is the context of what is not waited for.
func (a *app) logs(ctx, calls context.Context, c *api, run string, f logFlags) error {
	id, err := findLog(calls, c, run)
	if err != nil {
		return err
	}
	var pieces []wire.Output
	r := a.newLogReader(c, id)
	r.offset = f.offset
	switch f.format {
	case logNDJSON:
		r.show = func(p wire.Output) error {
			return output.WriteValue(a.answer(output.NDJSON), p, nil)
		}
	case logJSON:
		r.show = func(p wire.Output) error {
			pieces = append(pieces, p)
			return nil
		}
	case logText:
	}
	if f.follow {
		return r.follow(ctx)
	}
	last, err := r.catchUp(calls)
	if err != nil {
		return err
	}
	r.sayWhyNothing(&last)
	if f.format == logJSON {
		return output.Write(a.answer(output.JSON), output.List[wire.Output]{Items: pieces})
	}
	return r.close()
}

// maxLogRuns is how many of a job's runs are looked at for one that was started.
const maxLogRuns = 200

// findLog is the run that an id or the name of a job means. A job whose name is a number is found when there is no such run.
func findLog(ctx context.Context, c *api, run string) (int64, error) {
	id, err := strconv.ParseInt(run, 10, 64)
	isID := err == nil && id > 0
	if isID {
		err := c.get(ctx, outputPath(id), url.Values{"limit": {"1"}}, &wire.Output{})
		if !isProblem(err, "not_found") {
			return id, err
		}
	}
	var page wire.RunPage
	query := url.Values{"filter": {filter.TermOf("job", run)}, "limit": {strconv.Itoa(maxLogRuns)}}
	if err := c.get(ctx, "/runs", query, &page); err != nil && !isID {
		return 0, err
	}
	for i := range page.Runs {
		if page.Runs[i].StartedAt != nil {
			return page.Runs[i].ID, nil
		}
	}
	switch {
	case isID:
		return 0, fail(exitFailure, "there is no run %d", id).withHint("old runs are deleted; `cronlatch runs list` shows those that are kept")
	case len(page.Runs) > 0:
		return 0, fail(exitFailure, "no run of %q was started yet", run).withHint("`cronlatch runs list --job %s` says why", run)
	default:
		return 0, noLog(ctx, c, run)
	}
}

// noLog says of a job without a run whether it is the job that there is not.
func noLog(ctx context.Context, c *api, job string) error {
	err := c.get(ctx, jobPath(job, ""), nil, &wire.Job{})
	switch {
	case isProblem(err, "not_found"):
		return fail(exitFailure, "%w", err).withHint("`cronlatch jobs list` shows the jobs")
	case err != nil:
		return err
	default:
		return fail(exitFailure, "there is no run of %q", job).withHint("`cronlatch explain %s` tells when it runs", job)
	}
}

func outputPath(run int64) string { return "/runs/" + strconv.FormatInt(run, 10) + "/output" }

// isAway reports whether an answer did not come, or says that the database is away: it may be over in a moment.
func isAway(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.code == exitUnavailable || passing(err)
}
