package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// triggerFlags are the flags of run.
type triggerFlags struct {
	request wire.Start
	server  string
	detach  bool
	format  output.Format
}

func (a *app) runCommand() *cobra.Command {
	var f triggerFlags
	cmd := &cobra.Command{
		Use:   "run JOB",
		Short: "Run a job now, on whichever replica has room; wait, and exit with its code",
		Long: "run puts a manual run into the ledger; any replica that knows the job takes it within a second. The command shows\n" +
			"what the job prints while it runs, waits for the end, also of further attempts, and exits with the job's own code\n" +
			"(see help exit-codes). Ctrl-C ends the waiting, not the run. With --detach it prints the run's id and does not wait.",
		Example: "  $ cronlatch run backup:db --detach\n" +
			"  $ cronlatch run report:monthly -p month=2026-05 --reason \"the bank was late\"",
		Args: oneArg("the name of a job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.trigger(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	addParams(cmd, &f.request.Params)
	flags.StringVar(&f.request.Reason, "reason", "", "for the audit")
	flags.StringVar(&f.request.RequestID, "request-id", "", "key of this request: asking again with it finds the first run (default random)")
	flags.BoolVar(&f.detach, "detach", false, "print the run's id and do not wait")
	addServer(cmd, &f.server)
	addOutput(cmd, &f.format, output.Table, output.JSON, output.YAML, output.Name)
	return cmd
}

func (a *app) trigger(ctx context.Context, name string, f triggerFlags) error {
	if f.server == "" && a.Getenv("CRONLATCH_SERVER") == "" { // the file tells more about a job than an answer
		if err := a.runnable(name); err != nil {
			return err
		}
	}
	if f.request.RequestID == "" {
		f.request.RequestID = rand.Text() // here, so that the same request can be made again when no answer comes
	}
	return a.withAPI(ctx, f.server, func(calls context.Context, c *api) error {
		var run wire.Run
		err := c.post(calls, "/jobs/"+url.PathEscape(name)+"/runs", f.request, &run)
		switch {
		case err != nil:
			return notStarted(calls, c, name, f.request.RequestID, err)
		case f.detach:
			return a.showRun(&run, f.format)
		}
		return settled(a.follow(ctx, c, &run, f.format)) // ctx: from here on the user's own patience counts
	})
}

// runnable says why no replica would take a run of the job.
func (a *app) runnable(name string) error {
	config, err := a.loadConfig()
	if err != nil {
		return err
	}
	return runnable(config, name)
}

func runnable(config *configs.Config, name string) error {
	job, err := config.Job(name)
	if err != nil {
		return fail(exitFailure, "%w", err).withHint("`cronlatch jobs list` shows the jobs")
	}
	if !job.Enabled {
		return fail(exitFailure, "the job %q is disabled, and no replica would take the run", name).
			withHint("`enabled: true` in %s enables it", config.Path)
	}
	return nil
}

// notStarted says why there is no run, or that there may be one.
func notStarted(ctx context.Context, c *api, name, requestID string, err error) error {
	p, answered := errors.AsType[*problemError](err)
	switch {
	case !answered && mayBeDone(err), answered && p.Status == http.StatusServiceUnavailable && p.Code == "database":
		return unanswered(ctx, c.where, err, requestID)
	case !answered:
		return err
	case p.Code == "overlap":
		return inTheWay(ctx, c, name, p)
	}
	return refusedJob(name, p, err)
}

// refusedJob adds what to type to an answer about a job.
func refusedJob(name string, p *problemError, err error) error {
	switch {
	case p.Code == "not_found":
		return fail(exitFailure, "%w", p).withHint("`cronlatch jobs list` shows the jobs")
	case p.Status == http.StatusUnprocessableEntity && p.only("params"):
		sentences := make([]string, len(p.Errors))
		for i, e := range p.Errors {
			sentences[i] = e.Message
		}
		return usage("%s", strings.Join(sentences, "; ")).withHint("`cronlatch jobs show %s` shows the parameters", word(name))
	default:
		return err
	}
}

// only reports whether the fields that are wrong are all of this object.
func (p *problemError) only(object string) bool {
	for _, e := range p.Errors {
		if e.Field != object && !strings.HasPrefix(e.Field, object+".") {
			return false
		}
	}
	return len(p.Errors) > 0
}

// mayBeDone reports whether a request without an answer may have been done: one that found nobody was not.
func mayBeDone(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	return isAway(err) || errors.Is(err, context.Canceled)
}

// inTheWay says which run a manual one would have to wait for, and what can be done about it.
func inTheWay(ctx context.Context, c *api, name string, p *problemError) error {
	text, since := "has not ended", ""
	var run wire.Run
	if err := c.get(ctx, runPath(p.RunID, ""), nil, &run); err == nil {
		text, since = "is "+run.State, stamp(run.DueAt)
		if run.StartedAt != nil {
			text, since = "is running on replica "+orNone(run.Replica), stamp(*run.StartedAt)
		}
		since = " since " + since
	}
	return fail(exitBusy, "busy: run %d of %s %s%s, and the job's overlap is skip", p.RunID, name, text, since).
		withHint("`cronlatch logs %d -f` follows it, `cronlatch runs cancel %d` ends it", p.RunID, p.RunID)
}

// unanswered says that the run may be there or not, and how to find out without making a second one.
func unanswered(ctx context.Context, where string, err error, requestID string) *failure {
	f := fail(exitUnavailable, "%w", err)
	if errors.Is(ctx.Err(), context.Canceled) {
		f = fail(exitInterrupted, "interrupted before %s answered", where)
	}
	return f.withHint("the run may be in the ledger all the same; asking again with --request-id %s finds it", requestID)
}

// showRun prints the run; for people and scripts its id is enough.
func (a *app) showRun(run *wire.Run, f output.Format) error {
	return output.WriteValue(a.answer(f), *run, func() []string { return []string{runView{*run}.name()} })
}

// follow waits for the end of the run, shows what it prints where that is the answer, and exits with its code.
func (a *app) follow(ctx context.Context, c *api, run *wire.Run, f output.Format) error {
	w := &waiter{a: a, api: c, logs: f == output.Table}
	last, err := w.wait(ctx, run)
	if err != nil {
		return err
	}
	if f != output.Table {
		if err := a.showRun(last, f); err != nil {
			return err
		}
	}
	a.say("%s", ending(last))
	return exit(exitCodeOf(last))
}

// showBytes writes the job's bytes as they are, unless they go to a terminal that would act on them.
func (a *app) showBytes(b []byte) error {
	if a.Terminal {
		b = []byte(output.CleanLines(string(b)))
	}
	if _, err := a.Stdout.Write(b); err != nil {
		return fmt.Errorf("writing the job's output: %w", err)
	}
	return nil
}

// requester is who asks, for the ledger: the account and the host of this process. It is a help, not a proof.
func requester() string {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}
