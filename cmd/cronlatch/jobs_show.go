package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/wire"
)

// jobSentences tell a job to a person, a fact a line.
func jobSentences(j *wire.Job, next *wire.Instants, now time.Time) []string {
	var lines []string
	say := func(title, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-13s ", title)+fmt.Sprintf(format, args...))
	}
	say("job", "%s", j.Name)
	if j.Description != "" {
		say("description", "%s", j.Description)
	}
	if len(j.Tags) > 0 {
		say("tags", "%s", strings.Join(j.Tags, ", "))
	}
	say("schedule", "%s", strings.TrimSpace(scheduleText(*j)+" "+orNone(j.Timezone)))
	if j.Defined {
		sayDefinition(j, next, now, say)
	}
	sayState(j.State, now, say)
	return lines
}

func sayDefinition(j *wire.Job, next *wire.Instants, now time.Time, say func(string, string, ...any)) {
	if !j.Enabled {
		say("next", "disabled")
	}
	for _, at := range next.Instants {
		text := ""
		if !at.DueAt.Equal(at.At) {
			text = ", due " + stamp(at.DueAt)
		}
		if j.Enabled {
			say("next", "%s (%s)%s", at.Local, relative(at.At.Sub(now)), text)
		}
	}
	say("runs", "%s, locks %s", j.Kind, j.Resource)
	say("policies", "overlap %s, on_lost %s, catch_up %s, at most %s", j.Overlap, j.OnLost, j.CatchUp.Policy, counted(j.Attempts, "attempt"))
	limits := []string{}
	for _, l := range []struct {
		name string
		span *string
	}{{"timeout", j.Timeout}, {"start_deadline", j.StartDeadline}, {"max_age", j.MaxAge}, {"late_after", j.LateAfter}} {
		if l.span != nil {
			limits = append(limits, l.name+" "+*l.span)
		}
	}
	if len(limits) > 0 {
		say("limits", "%s", strings.Join(limits, ", "))
	}
	for _, p := range j.Params {
		say("parameter", "%s (%s)%s", p.Name, p.Type, paramRest(p))
	}
}

func paramRest(p wire.JobParam) string {
	text := ""
	if p.Default != nil {
		text = ", default " + *p.Default
	}
	if p.Description != "" {
		text += ": " + p.Description
	}
	return text
}

func sayState(s *wire.JobState, now time.Time, say func(string, string, ...any)) {
	if s == nil {
		return
	}
	if p := s.Paused; p != nil {
		until, of := "until it is resumed", ""
		if p.Until != nil {
			until = "until " + stamp(*p.Until)
		}
		if p.Job == nil {
			of = " like all jobs"
		}
		say("paused", "%s%s, by %s%s", until, of, p.By, because(p.Reason))
	}
	tell := func(title string, r *wire.Run) {
		if r == nil {
			return
		}
		v := runView{*r}
		text := fmt.Sprintf("run %d, %s", r.ID, v.status())
		if why := v.why(); why != "" {
			text += " (" + why + ")"
		}
		if r.FinishedAt != nil {
			text += ", " + relative(r.FinishedAt.Sub(now))
		}
		say(title, "%s", text)
	}
	tell("last run", s.LastRun)
	tell("last success", s.LastSuccess)
	for i := range s.UnfinishedRuns {
		tell("unfinished", &s.UnfinishedRuns[i])
	}
	if more := s.Unfinished - len(s.UnfinishedRuns); more > 0 {
		say("unfinished", "and %d more", more)
	}
}

// because ends a sentence with the reason, when there is one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
