package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/scheduler"
)

const pauseHelp = `While a job is paused, its schedule starts nothing: instants are missed, reason paused, and never caught up.
What runs goes on, and "cronlatch run" still starts a run. A retry that is due waits for the end, up to its
start_deadline. Pausing again replaces the reason and the end. When the command returns, no replica starts
anything more of it. The audit keeps who did it (account and host) and the reason.`

// allJobs is the name under which all jobs are paused.
const allJobs = ""

// pauseFlags are the flags of jobs pause and pause-all.
type pauseFlags struct {
	reason string
	until  end
}

func (f *pauseFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the audit and for whoever asks why nothing ran")
	cmd.Flags().Var(&f.until, "until", "when it ends by itself: after 2h or 3d, or at an instant (default: when it is resumed)")
}

// end is a flag that takes how long something lasts, or the instant when it ends.
type end struct {
	at    time.Time
	after time.Duration
}

func (*end) String() string { return "" }

// Type is what the help shows.
func (*end) Type() string { return "duration|time" }

// Set reads the flag. Whether an instant has passed is for the database's clock to say.
func (e *end) Set(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		e.at, e.after = at, 0
		return nil
	}
	d, err := configs.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is neither a duration (90m, 3d, 2w) nor a time like 2026-03-07T12:00:00-05:00", text)
	}
	e.at, e.after = time.Time{}, d
	return nil
}

func (a *app) jobsPauseCommand() *cobra.Command {
	var f pauseFlags
	cmd := &cobra.Command{
		Use:     "pause JOB...",
		Short:   "Let the schedules of jobs start nothing until they are resumed",
		Long:    pauseHelp,
		Example: "  $ cronlatch jobs pause backup:db --reason \"the disk is full\"\n  $ cronlatch jobs pause backup:db report:weekly --until 2h",
		Args:    someArgs("the name of a job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withPauses(cmd.Context(), func(ctx context.Context, p *scheduler.Pauses) error {
				for _, name := range args {
					if err := a.checkKnown(ctx, p, name); err != nil {
						return err
					}
				}
				return a.pause(ctx, p, args, f)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) pauseAllCommand() *cobra.Command {
	var f pauseFlags
	cmd := &cobra.Command{
		Use:     "pause-all",
		Short:   "Let no schedule start anything until resume-all",
		Long:    pauseHelp,
		Example: "  $ cronlatch pause-all --reason \"moving the database\" --until 30m",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withPauses(cmd.Context(), func(ctx context.Context, p *scheduler.Pauses) error {
				return a.pause(ctx, p, []string{allJobs}, f)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) pause(ctx context.Context, p *scheduler.Pauses, names []string, f pauseFlags) error {
	paused, err := p.Pause(ctx, scheduler.PauseRequest{
		Jobs: unique(names), Reason: f.reason, By: requester(), Until: f.until.at, For: f.until.after,
	})
	if errors.Is(err, scheduler.ErrPast) {
		return usage("--until %s has passed; nothing was paused", f.until.at.Format(time.RFC3339))
	}
	if err != nil {
		return err
	}
	for i := range paused {
		a.say("%s", pausedSentence(&paused[i]))
	}
	return nil
}

func pausedSentence(p *scheduler.Paused) string {
	until, resume := "until it is resumed", "jobs resume "+word(p.Job)
	if p.Job == allJobs {
		until, resume = "until they are resumed", "resume-all"
	}
	if !p.Until.IsZero() {
		until = "until " + stamp(p.Until)
	}
	state := subject(p.Job) + " paused " + until
	if p.Before {
		state = subject(p.Job) + " paused since " + stamp(p.From) + " already, and from now on " + until
	}
	return state + "; `cronlatch " + resume + "` ends it"
}

// subject begins a sentence about a job or about all of them.
func subject(job string) string {
	if job == allJobs {
		return "all jobs are"
	}
	return fmt.Sprintf("the job %q is", job)
}

// withPauses opens the database that flags, environment and file name.
func (a *app) withPauses(ctx context.Context, f func(context.Context, *scheduler.Pauses) error) error {
	return a.withDatabase(ctx, func(ctx context.Context, db *database.DB) error {
		p, err := scheduler.OpenPauses(db.Main)
		if err != nil {
			return err
		}
		return f(ctx, p)
	})
}

// checkKnown refuses a name that is neither in the configuration here nor was ever planned or run: most likely it is mistyped.
// Without a configuration that can be read, the database alone says.
func (a *app) checkKnown(ctx context.Context, p *scheduler.Pauses, name string) error {
	config, unreadable := a.loadConfig()
	var unknown error
	if unreadable == nil {
		if _, unknown = config.Job(name); unknown == nil {
			return nil
		}
	}
	known, err := p.Known(ctx, name)
	if err != nil || known {
		return err
	}
	if unknown != nil {
		return fail(exitFailure, "%w; nothing was paused", unknown).withHint("`cronlatch jobs list` shows the jobs")
	}
	planned, err := p.Planned(ctx)
	if err != nil {
		return err
	}
	return fail(exitFailure, "no replica has ever planned a job %q%s; nothing was paused", name, didYouMean(name, "", planned))
}

// unique are the names in their order, each once.
func unique(names []string) (once []string) {
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}
