package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
)

// maxNext bounds -n: a year of minutes is a mistake.
const maxNext = 10_000

// nextFlags are the flags of next.
type nextFlags struct {
	schedule string
	options  jobs.ScheduleOptions
	from     time.Time
	count    int
	format   output.Format
}

func (a *app) nextCommand() *cobra.Command {
	f := nextFlags{options: jobs.ScheduleOptions{DST: jobs.DSTOnce}}
	cmd := &cobra.Command{
		Use:   "next [JOB]",
		Short: "Print when a job, or a schedule, fires next",
		Long: "next prints the instants after --from at which a schedule fires, with what the change to and from daylight\n" +
			"saving time does to them. The schedule is that of a job in the configuration, or the one of --schedule.",
		Example: "  $ cronlatch next backup:db\n  $ cronlatch next --schedule \"30 2 * * *\" --timezone America/New_York -n 3",
		Args:    atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			schedule, err := a.scheduleFor(cmd, args, f)
			if err != nil {
				return err
			}
			return a.next(schedule, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.schedule, "schedule", "", "a schedule instead of a job: \"30 2 * * *\", @daily, \"@every 15m\"")
	flags.StringVar(&f.options.Timezone, "timezone", "", "IANA zone of --schedule (default UTC)")
	flags.Var(choice[jobs.DST]{&f.options.DST, []jobs.DST{jobs.DSTOnce, jobs.DSTSkip, jobs.DSTBoth}}, "dst", "what --schedule does when clocks change")
	flags.BoolVar(&f.options.Seconds, "seconds", false, "--schedule has six fields, seconds first")
	flags.Var(instant{&f.from}, "from", "instants after this time (default now)")
	flags.IntVarP(&f.count, "count", "n", 5, "how many")
	addOutput(cmd, &f.format, listFormats()...)
	return cmd
}

// scheduleFor is the schedule of the job or of the flags.
func (a *app) scheduleFor(cmd *cobra.Command, args []string, f nextFlags) (*jobs.Schedule, error) {
	if f.count < 1 || f.count > maxNext {
		return nil, usage("-n must be between 1 and %d", maxNext)
	}
	if len(args) == 0 {
		if !cmd.Flags().Changed("schedule") {
			return nil, usage("next needs the name of a job, or --schedule").
				withHint("`cronlatch jobs list` shows the jobs with their next run")
		}
		schedule, err := jobs.ParseSchedule(f.schedule, f.options)
		if err != nil {
			return nil, a.badSchedule(f.schedule, err)
		}
		return schedule, nil
	}
	for _, flag := range []string{"schedule", "timezone", "dst", "seconds"} {
		if cmd.Flags().Changed(flag) {
			return nil, usage("--%s does not go with the job %q: the file has its schedule", flag, args[0])
		}
	}
	config, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	job, err := config.Job(args[0])
	if err != nil {
		return nil, err
	}
	if job.Schedule == nil {
		return nil, fail(exitFailure, "the job %q has no schedule", job.Name).withHint("`cronlatch run %s` runs it by hand", job.Name)
	}
	return job.Schedule, nil
}

// badSchedule says what is wrong with the text and shows where.
func (a *app) badSchedule(text string, err error) error {
	at, ok := errors.AsType[*jobs.ScheduleError](err)
	if !ok {
		return usage("--schedule: %w", err)
	}
	a.say("%s  [%s]", at.Message, at.Code)
	if strings.HasPrefix(at.Code, "schedule") && at.Offset <= len(text) {
		a.say("  %s", text)
		a.say("  %s^%s", strings.Repeat(" ", len([]rune(output.Clean(text[:at.Offset])))), strings.Repeat("~", max(0, at.Length-1)))
	}
	return exit(exitUsage)
}

// firing is one instant of a schedule.
type firing struct {
	at   time.Time // in the schedule's zone
	note string
}

// MarshalJSON keeps the zone's offset, "+00:00" for UTC included.
func (f firing) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"at": %q}`, f.String()), nil
}

func (f firing) String() string { return f.at.Format("2006-01-02T15:04:05-07:00") }

func (a *app) next(schedule *jobs.Schedule, f nextFlags) error {
	from := f.from
	if from.IsZero() {
		from = a.Now()
	}
	list := firings(schedule, from, f.count)
	if len(list) < f.count {
		a.say("the schedule never fires after %s", lastOf(list, from).Format(time.RFC3339))
	}
	return output.Write(a.answer(f.format), output.List[firing]{
		Items: list,
		Name:  firing.String,
		Columns: []output.Column[firing]{
			{Title: "DAY", Cell: func(f firing) string { return f.at.Format("Mon") }},
			{Title: "LOCAL", Cell: func(f firing) string { return f.at.Format("2006-01-02 15:04:05 -07:00") }},
			{Title: "UTC", Cell: func(f firing) string { return stamp(f.at) }},
			{Title: "FROM NOW", Cell: func(f firing) string { return relative(f.at.Sub(a.Now())) }},
			{Title: "NOTE", Cell: func(f firing) string { return f.note }, Tone: func(firing) output.Tone { return output.Warn }},
		},
	})
}

func lastOf(list []firing, from time.Time) time.Time {
	if len(list) == 0 {
		return from
	}
	return list[len(list)-1].at
}

func firings(schedule *jobs.Schedule, from time.Time, n int) []firing {
	list := []firing{}
	before := from.In(schedule.Location())
	for at := schedule.Next(from); len(list) < n && !at.IsZero(); at = schedule.Next(at) {
		local := at.In(schedule.Location())
		list = append(list, firing{local, clockNote(before, local)})
		before = local
	}
	return list
}
