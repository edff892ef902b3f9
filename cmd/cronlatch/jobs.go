package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
)

func (a *app) jobsCommand() *cobra.Command {
	return groupCommand("jobs", "Look at the jobs, pause and resume them", "  $ cronlatch jobs list\n  $ cronlatch jobs pause backup:db --until 2h",
		a.jobsListCommand(), a.jobsPauseCommand(), a.jobsResumeCommand(), a.jobsPausedCommand())
}

func (a *app) jobsListCommand() *cobra.Command {
	var format output.Format
	var tag string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the jobs of the configuration with their next run",
		Example: "  $ cronlatch jobs list\n  $ cronlatch jobs list --tag finance -o name",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			config, err := a.loadConfig()
			if err != nil {
				return err
			}
			return a.listJobs(config, tag, format)
		},
	}
	cmd.Flags().StringVar(&tag, "tag", "", "only jobs with this tag")
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

func (a *app) listJobs(config *configs.Config, tag string, format output.Format) error {
	views := []jobView{}
	now := a.Now()
	for _, j := range config.Jobs {
		if v := viewJob(j, now); tag == "" || slices.Contains(v.Tags, tag) {
			views = append(views, v)
		}
	}
	switch {
	case len(views) == 0 && tag != "":
		a.say("no jobs in %s have this tag", config.Path)
	case len(views) == 0:
		a.say("no jobs in %s", config.Path)
	}
	var columns []output.Column[jobView]
	for _, c := range jobColumns(now) {
		columns = append(columns, output.Column[jobView]{Title: c.Title, Cell: func(v jobView) string { return c.Cell(v.job) }})
	}
	return output.Write(a.answer(format), output.List[jobView]{Items: views, Columns: columns, Name: func(v jobView) string { return v.Name }})
}

// jobView is a job as commands print it. Times are RFC 3339 in UTC, durations Go's with d and w.
type jobView struct {
	Name          string      `json:"name"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	Schedule      *string     `json:"schedule"` // null: runs after others, or by hand
	Timezone      *string     `json:"timezone"`
	After         []afterView `json:"after"`
	HookOf        *string     `json:"hook_of"` // null: a job of its own
	Enabled       bool        `json:"enabled"`
	Resource      string      `json:"resource"`
	Next          *time.Time  `json:"next"` // null: disabled, without a schedule, or never again
	Overlap       string      `json:"overlap"`
	CatchUp       catchUpView `json:"catch_up"`
	OnLost        string      `json:"on_lost"`
	Timeout       *string     `json:"timeout"` // null: none
	KillAfter     string      `json:"kill_after"`
	StartDeadline *string     `json:"start_deadline"` // null: none
	MaxAge        *string     `json:"max_age"`        // null: none
	OnlyOn        jobs.Labels `json:"only_on"`        // null: any replica

	job *jobs.Job
}

type catchUpView struct {
	Policy string `json:"policy"`
	Window string `json:"window"`
	Max    int    `json:"max"`
}

func viewJob(j *jobs.Job, now time.Time) jobView {
	v := jobView{
		Name: j.Name, Description: j.Description, Tags: append([]string{}, j.Tags...), Enabled: j.Enabled,
		Resource: j.Resource.String(), Next: nextRun(j, now), Overlap: string(j.Overlap), OnLost: string(j.OnLost),
		CatchUp:   catchUpView{string(j.CatchUp.Policy), durationText(j.CatchUp.Window), j.CatchUp.Max},
		Timeout:   durationOrNull(j.Timeout),
		KillAfter: durationText(j.KillAfter), StartDeadline: durationOrNull(j.StartDeadline), MaxAge: durationOrNull(j.MaxAge), OnlyOn: j.OnlyOn,
		After: viewAfter(j), job: j,
	}
	if j.HookOf != "" {
		v.HookOf = &j.HookOf
	}
	if j.Schedule != nil {
		v.Schedule, v.Timezone = new(j.Schedule.String()), new(j.Schedule.Location().String())
	}
	return v
}

func durationOrNull(d time.Duration) *string {
	if d == 0 {
		return nil
	}
	return new(durationText(d))
}
