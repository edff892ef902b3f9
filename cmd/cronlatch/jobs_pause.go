package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/wire"
)

const pauseHelp = `While a job is paused, its schedule starts nothing: instants are missed, reason paused, and never caught up.
What runs goes on, and "cronlatch run" still starts a run. A retry that is due waits for the end, up to its
start_deadline. Pausing again replaces the reason and the end. When the command returns, no replica starts
anything more of it. The audit keeps who did it (account and host) and the reason.`

// allJobs is the name under which all jobs are paused.
const allJobs = ""

// pauseFlags are the flags of jobs pause and pause-all.
type pauseFlags struct {
	jobFlags

	reason string
	until  end
}

func (f *pauseFlags) add(cmd *cobra.Command) {
	f.jobFlags.add(cmd)
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the audit and for whoever asks why nothing ran")
	cmd.Flags().Var(&f.until, "until", "when it ends by itself: after 2h or 3d, or at an instant (default: when it is resumed)")
}

// jobFlags say which jobs a command is about, and whom to ask.
type jobFlags struct {
	tag    string
	server string
}

func (f *jobFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tag, "tag", "", "the jobs that have this tag now")
	addServer(cmd, &f.server)
}

// names wants the names of jobs, or --tag instead of them.
func (f *jobFlags) names(cmd *cobra.Command, args []string) error {
	switch {
	case f.tag == "":
		return someArgs("the name of a job")(cmd, args)
	case len(args) > 0:
		return usage("%s takes the names of jobs or --tag, not both", commandName(cmd))
	}
	return nil
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
		Example: "  $ cronlatch jobs pause backup:db --reason \"the disk is full\"\n  $ cronlatch jobs pause --tag finance --until 2h",
		Args:    f.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.pause(cmd.Context(), wire.PauseRequest{Jobs: unique(args), Tag: f.tag}, f)
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
		Long:    pauseHelp + "\nWith --tag it is each of the jobs that have the tag now.",
		Example: "  $ cronlatch pause-all --reason \"moving the database\" --until 30m",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.pause(cmd.Context(), wire.PauseRequest{Tag: f.tag, All: f.tag == ""}, f)
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) pause(ctx context.Context, r wire.PauseRequest, f pauseFlags) error {
	r.Reason = f.reason
	if !f.until.at.IsZero() {
		r.Until = &f.until.at
	}
	r.ForSeconds = int64((f.until.after + time.Second - 1) / time.Second)
	return a.withAPI(ctx, f.server, func(ctx context.Context, c *api) error {
		var paused wire.PausedList
		if err := c.post(ctx, "/jobs/pause", r, &paused); err != nil {
			return a.notPaused(c, r, err)
		}
		for i := range paused.Pauses {
			a.say("%s", pausedSentence(&paused.Pauses[i]))
		}
		return nil
	})
}

// notPaused says why in the words of the command line.
func (a *app) notPaused(c *api, r wire.PauseRequest, err error) error {
	p, ok := errors.AsType[*problemError](err)
	if ok && p.Code == "invalid" && len(p.Errors) == 1 && p.Errors[0].Field == "until" && r.Until != nil {
		return usage("--until %s %s", r.Until.Format(time.RFC3339), p.Errors[0].Message)
	}
	config, unreadable := a.loadConfig()
	if !isProblem(err, "not_found") || c.remote || unreadable != nil {
		return err
	}
	for _, name := range r.Jobs { // the file tells more than the database: where it is, and the name that was meant
		if _, unknown := config.Job(name); unknown != nil && strings.Contains(err.Error(), strconv.Quote(name)) {
			return fail(exitFailure, "%w; nothing was paused", unknown).withHint("`cronlatch jobs list` shows the jobs")
		}
	}
	return err
}

func pausedSentence(p *wire.Paused) string {
	job := orNone(p.Job)
	until, resume := "until it is resumed", "jobs resume "+word(job)
	if job == allJobs {
		until, resume = "until they are resumed", "resume-all"
	}
	if p.Until != nil {
		until = "until " + stamp(*p.Until)
	}
	state := subject(job) + " paused " + until
	if p.Before {
		state = subject(job) + " paused since " + stamp(p.From) + " already, and from now on " + until
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

// unique are the names in their order, each once.
func unique(names []string) (once []string) {
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}
