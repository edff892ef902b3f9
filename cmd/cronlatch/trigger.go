package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// triggerFlags are the flags of run.
type triggerFlags struct {
	detach    bool
	requestID string
	format    output.Format
}

func (a *app) runCommand() *cobra.Command {
	var f triggerFlags
	cmd := &cobra.Command{
		Use:   "run JOB",
		Short: "Run a job now, on whichever replica has room; wait, and exit with its code",
		Long: "run puts a manual run into the ledger; any replica that knows the job takes it within a second. The command\n" +
			"waits for the end, prints what the job printed, and exits with the job's own code (see help exit-codes).\n" +
			"Ctrl-C ends the waiting, not the run. With --detach it prints the run's id and does not wait.",
		Example: "  $ cronlatch run backup:db\n  $ cronlatch run backup:db --detach",
		Args:    oneArg("the name of a job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.trigger(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.detach, "detach", false, "print the run's id and do not wait")
	flags.StringVar(&f.requestID, "request-id", "", "key of this request: asking again with it finds the first run (default random)")
	addOutput(cmd, &f.format, output.Table, output.JSON, output.YAML, output.Name)
	return cmd
}

func (a *app) trigger(ctx context.Context, name string, f triggerFlags) error {
	config, err := a.loadConfig()
	if err != nil {
		return err
	}
	job, err := runnable(config, name)
	if err != nil {
		return err
	}
	target, err := a.targetOf(config)
	if err != nil {
		return err
	}
	request := jobs.TriggerRequest{Job: job, RequestID: f.key(), RequestedBy: requester()}
	return a.withTarget(ctx, target, func(calls context.Context, db *database.DB) error {
		ledger, err := jobs.OpenLedger(db.Main)
		if err != nil {
			return err
		}
		run, err := ledger.Trigger(calls, request)
		switch {
		case database.Unknown(err):
			return unanswered(ctx, err, request.RequestID)
		case err != nil:
			return err
		case f.detach:
			return a.showRun(run, f.format)
		}
		return settled(a.follow(ctx, db, run, f.format)) // ctx: from here on the user's own patience counts
	})
}

// unanswered says that the run may be there or not, and how to find out without making a second one.
func unanswered(ctx context.Context, err error, requestID string) *failure {
	f := fail(exitUnavailable, "the database gave no answer: %w", err)
	if ctx.Err() != nil {
		f = fail(exitInterrupted, "interrupted before the database answered")
	}
	return f.withHint("the run may be in the ledger all the same; asking again with --request-id %s finds it", requestID)
}

// runnable is the job, when a replica would take a run of it.
func runnable(config *configs.Config, name string) (*jobs.Job, error) {
	job, err := config.Job(name)
	if err != nil {
		return nil, fail(exitFailure, "%w", err).withHint("`cronlatch jobs list` shows the jobs")
	}
	if !job.Enabled {
		return nil, fail(exitFailure, "the job %q is disabled, and no replica would take the run", name).
			withHint("`enabled: true` in %s enables it", config.Path)
	}
	return job, nil
}

// follow waits for the end of the run and tells it.
func (a *app) follow(ctx context.Context, db *database.DB, run jobs.Run, f output.Format) error {
	ledger, err := jobs.OpenLedger(db.Main)
	if err != nil {
		return err
	}
	locks, err := locking.NewStore(db.Main)
	if err != nil {
		return err
	}
	w := &waiter{runs: ledger, locks: locks, say: a.say, patience: a.Patience}
	if run, err = w.wait(ctx, run); err != nil {
		return err
	}
	return a.conclude(ctx, ledger, run, f)
}

// key is the request's idempotency key.
func (f triggerFlags) key() string {
	if f.requestID != "" {
		return f.requestID
	}
	return rand.Text()
}

// showRun prints the run; for people and scripts its id is enough.
func (a *app) showRun(run jobs.Run, f output.Format) error {
	v := viewRun(&run)
	return output.WriteValue(a.answer(f), v, func() []string { return []string{v.name()} })
}

// conclude prints what the job printed, says how it ended, and gives its exit code.
func (a *app) conclude(ctx context.Context, ledger outputReader, run jobs.Run, f output.Format) error {
	if f == output.Table {
		calls, cancel := context.WithTimeout(ctx, a.Patience)
		defer cancel()
		out, err := ledger.Output(calls, run.ID)
		if err != nil {
			return err
		}
		if err := a.showOutput(out); err != nil {
			return err
		}
	} else if err := a.showRun(run, f); err != nil {
		return err
	}
	a.say("%s", ending(&run))
	return exit(exitCodeOf(&run))
}

// outputReader reads what a run printed.
type outputReader interface {
	Output(ctx context.Context, runID int64) (jobs.Output, error)
}

// showOutput writes the job's bytes as they are, unless they go to a terminal that would act on them.
func (a *app) showOutput(out jobs.Output) error {
	if err := a.showBytes(out.Head); err != nil {
		return err
	}
	if dropped := out.Total - int64(len(out.Head)+len(out.Tail)); dropped > 0 {
		a.say("... %d of %d bytes were not kept here ...", dropped, out.Total)
	}
	if err := a.showBytes(out.Tail); err != nil {
		return err
	}
	if text := string(out.Head) + string(out.Tail); a.Terminal && text != "" && !strings.HasSuffix(text, "\n") {
		return a.showBytes([]byte("\n")) // what is said next begins a line
	}
	return nil
}

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
