package main

import (
	"time"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

func jobViews(list []*jobs.Job, now time.Time) []wire.Job {
	views := make([]wire.Job, len(list))
	for i, j := range list {
		views[i] = wire.JobOf(j, now)
	}
	return views
}

// jobColumns is a job and its next run, as validate and `jobs list` show them.
func jobColumns(now time.Time) []output.Column[wire.Job] {
	return []output.Column[wire.Job]{
		{Title: "JOB", Cell: func(j wire.Job) string { return j.Name }},
		{Title: "SCHEDULE", Cell: scheduleText},
		{Title: "ZONE", Cell: func(j wire.Job) string { return orNone(j.Timezone) }},
		{Title: "NEXT", Cell: func(j wire.Job) string { return nextText(j, now) }, Tone: func(j wire.Job) output.Tone {
			if !j.Enabled {
				return output.Faint
			}
			return output.Plain
		}},
		{Title: "DESCRIPTION", Cell: func(j wire.Job) string { return j.Description }},
	}
}

// stateColumns are between NEXT and DESCRIPTION where the ledger was asked.
func stateColumns(now time.Time) []output.Column[wire.Job] {
	all := jobColumns(now)
	last := len(all) - 1
	return append(all[:last:last],
		output.Column[wire.Job]{Title: "STATE", Cell: stateText, Tone: func(j wire.Job) output.Tone {
			if j.State != nil && j.State.Paused != nil {
				return output.Warn
			}
			return output.Plain
		}},
		output.Column[wire.Job]{
			Title: "LAST", Cell: func(j wire.Job) string { return lastText(j, now) },
			Tone: func(j wire.Job) output.Tone {
				if j.State == nil || j.State.LastRun == nil {
					return output.Plain
				}
				return runView{*j.State.LastRun}.tone()
			},
		},
		all[last])
}

// stateText is what keeps the job busy, or holds it back.
func stateText(j wire.Job) string {
	switch {
	case j.State == nil:
		return ""
	case j.State.Paused != nil:
		return "paused"
	case j.State.Unfinished > 0:
		return j.State.UnfinishedRuns[0].State
	default:
		return ""
	}
}

func lastText(j wire.Job, now time.Time) string {
	if j.State == nil || j.State.LastRun == nil {
		return ""
	}
	r := runView{*j.State.LastRun}
	if r.FinishedAt == nil {
		return r.status()
	}
	return r.status() + " " + relative(r.FinishedAt.Sub(now))
}

func scheduleText(j wire.Job) string {
	switch {
	case !j.Defined:
		return "not defined here"
	case len(j.After) > 0:
		return chainText(&j)
	case j.Schedule == nil:
		return "by hand"
	}
	text := *j.Schedule
	if j.ScheduleLimits != nil {
		text += ", " + *j.ScheduleLimits
	}
	if j.Jitter != nil {
		text += ", jitter " + *j.Jitter
	}
	return text
}

func nextText(j wire.Job, now time.Time) string {
	switch {
	case !j.Defined:
		return ""
	case !j.Enabled:
		return "disabled"
	case len(j.After) > 0:
		return ""
	case j.Schedule == nil:
		return "`cronlatch run " + j.Name + "`"
	case j.Next == nil:
		return "never again"
	}
	zone, err := jobs.LoadZone(orNone(j.Timezone))
	if err != nil { // a server with newer zones than this program
		zone = time.UTC
	}
	return j.Next.In(zone).Format("Mon 2006-01-02 15:04:05 -07:00") + " (" + relative(j.Next.Sub(now)) + ")"
}
