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
	schedules []string
	options   jobs.ScheduleOptions
	from      time.Time
	count     int
	format    output.Format
}

func (a *app) nextCommand() *cobra.Command {
	f := nextFlags{options: jobs.ScheduleOptions{DST: jobs.DSTOnce, DayMatch: jobs.DayMatchAny}}
	cmd := &cobra.Command{
		Use:   "next [JOB]",
		Short: "Print when a job, or a schedule, fires next",
		Long: "next prints the instants after --from at which a schedule fires, with what the change to and from daylight\n" +
			"saving time does to them, with what calendars moved, and with when jitter makes the run due. The schedule is that\n" +
			"of a job in the configuration, or the one of --schedule, which may be given several times for a list.",
		Example: "  $ cronlatch next backup:db\n  $ cronlatch next --schedule \"30 2 * * *\" --timezone America/New_York -n 3",
		Args:    atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := a.scheduledJob(cmd, args, f)
			if err != nil {
				return err
			}
			return a.next(job, f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.schedules, "schedule", nil, "a schedule instead of a job: \"30 2 * * *\", @daily, \"@every 15m\"")
	flags.StringVar(&f.options.Timezone, "timezone", "", "IANA zone of --schedule (default UTC)")
	flags.Var(choice[jobs.DST]{&f.options.DST, []jobs.DST{jobs.DSTOnce, jobs.DSTSkip, jobs.DSTBoth}}, "dst", "what --schedule does when clocks change")
	flags.Var(choice[jobs.DayMatch]{&f.options.DayMatch, []jobs.DayMatch{jobs.DayMatchAny, jobs.DayMatchAll}}, "day-match", "how --schedule combines two day fields")
	flags.StringVar(&f.options.Job, "spread-by", "", "name of the job that H in --schedule is spread by")
	flags.BoolVar(&f.options.Seconds, "seconds", false, "--schedule has six fields, seconds first")
	flags.Var(instant{&f.from}, "from", "instants after this time (default now)")
	flags.IntVarP(&f.count, "count", "n", 5, "how many")
	addOutput(cmd, &f.format, listFormats()...)
	return cmd
}

// scheduledJob is the job of the file, or one without a name for the schedule of the flags.
func (a *app) scheduledJob(cmd *cobra.Command, args []string, f nextFlags) (*jobs.Job, error) {
	if f.count < 1 || f.count > maxNext {
		return nil, usage("-n must be between 1 and %d", maxNext)
	}
	if len(args) == 0 {
		if !cmd.Flags().Changed("schedule") {
			return nil, usage("next needs the name of a job, or --schedule").
				withHint("`cronlatch jobs list` shows the jobs with their next run")
		}
		schedule, err := jobs.ParseSchedules(f.schedules, f.options)
		if err != nil {
			return nil, a.badSchedule(f.schedules, err)
		}
		return &jobs.Job{Schedule: schedule}, nil
	}
	for _, flag := range []string{"schedule", "timezone", "dst", "day-match", "spread-by", "seconds"} {
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
	if len(job.After) > 0 {
		return nil, noScheduleOfItsOwn(config, job)
	}
	if job.Schedule == nil {
		return nil, fail(exitFailure, "the job %q has no schedule", job.Name).withHint("`cronlatch run %s` runs it by hand", job.Name)
	}
	return job, nil
}

// badSchedule says what is wrong with a text and shows where.
func (a *app) badSchedule(texts []string, err error) error {
	at, ok := errors.AsType[*jobs.ScheduleError](err)
	if !ok {
		return usage("--schedule: %w", err)
	}
	a.say("%s  [%s]", at.Message, at.Code)
	if strings.HasPrefix(at.Code, "schedule") && at.Item >= 0 && at.Item < len(texts) && at.Offset <= len(texts[at.Item]) {
		text := texts[at.Item]
		a.say("  %s", text)
		a.say("  %s^%s", strings.Repeat(" ", len([]rune(output.Clean(text[:at.Offset])))), strings.Repeat("~", max(0, at.Length-1)))
	}
	return exit(exitUsage)
}

// firing is one instant of a schedule.
type firing struct {
	at   time.Time // in the schedule's zone
	due  time.Time // the same, unless there is a jitter
	note string
}

// MarshalJSON keeps the zone's offset, "+00:00" for UTC included.
func (f firing) MarshalJSON() ([]byte, error) {
	if !f.due.Equal(f.at) {
		return fmt.Appendf(nil, `{"at": %q, "due_at": %q}`, f.String(), f.due.Format("2006-01-02T15:04:05.999-07:00")), nil
	}
	return fmt.Appendf(nil, `{"at": %q}`, f.String()), nil
}

func (f firing) String() string { return f.at.Format("2006-01-02T15:04:05-07:00") }

func (a *app) next(job *jobs.Job, f nextFlags) error {
	from := f.from
	if from.IsZero() {
		from = a.Now()
	}
	list := firings(job, from, f.count)
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

func firings(job *jobs.Job, from time.Time, n int) []firing {
	list := []firing{}
	schedule := job.Schedule
	before := from.In(schedule.Location())
	for at := schedule.Next(from); len(list) < n && !at.IsZero(); at = schedule.Next(at) {
		local := at.In(schedule.Location())
		list = append(list, firing{local, job.DueAt(local), firingNote(job, before, local)})
		before = local
	}
	return list
}

// firingNote is everything that is special about an instant.
func firingNote(job *jobs.Job, before, at time.Time) string {
	var notes []string
	if note := clockNote(before, at); note != "" {
		notes = append(notes, note)
	}
	if job.Schedule.Moved(at) {
		notes = append(notes, "moved here by a calendar")
	}
	if due := job.DueAt(at); !due.Equal(at) {
		notes = append(notes, "due "+due.Format("15:04:05")+" (jitter)")
	}
	return strings.Join(notes, "; ")
}
