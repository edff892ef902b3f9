package configs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// jobDraft is a job, or the defaults of all jobs, as it is read.
type jobDraft struct {
	name string
	key  *node   // of the job in the map of jobs
	at   present // the keys that the job itself has

	schedule, timezone       string
	seconds                  bool
	dst                      jobs.DST
	command                  []string
	commandNodes             []*node
	run                      string
	env                      map[string]string
	timeout, killAfter       time.Duration
	resource, resourceOffset string
	overlap                  jobs.Overlap
	catchUp                  jobs.CatchUp
	startDeadline            time.Duration
	onLost                   jobs.OnLost
	enabled                  bool
	description              string
	tags                     []string
}

// jobFields is the table of a job's keys; those marked shared may be set for all jobs in defaults.
func jobFields() []field[jobDraft] {
	return append(append(scheduleFields(), commandFields()...), policyFields()...)
}

func scheduleFields() []field[jobDraft] {
	return []field[jobDraft]{
		{
			key: "description", doc: "What the job is for, in a sentence.",
			bind: func(d *jobDraft) sink { return text{into: &d.description} },
		},
		{
			key: "tags", doc: "Words to find jobs by.",
			bind: func(d *jobDraft) sink { return list{into: &d.tags} },
		},
		{
			key: "enabled", initial: "true", doc: "false keeps the definition and runs nothing by schedule.",
			bind: func(d *jobDraft) sink { return boolean{&d.enabled} },
		},
		{
			key: "schedule", doc: "Five-field cron, @hourly and its kin, or @every 15m. A job without it runs by hand only.",
			bind: func(d *jobDraft) sink { return scheduleText{text{into: &d.schedule}} },
		},
		{
			key: "seconds", initial: "false", doc: "true makes the schedule six fields, the first of which is the second.",
			bind: func(d *jobDraft) sink { return boolean{&d.seconds} },
		},
		{
			key: "timezone", initial: "UTC", shared: true, doc: "The IANA zone of the schedule and of dates in the resource.",
			bind: func(d *jobDraft) sink { return text{into: &d.timezone, check: checkZone} },
		},
		{
			key: "dst", initial: string(jobs.DSTOnce), shared: true, doc: "What a fixed time does when a change of the zone's offset skips or repeats it.",
			bind: func(d *jobDraft) sink {
				return choice[jobs.DST]{into: &d.dst, words: []jobs.DST{jobs.DSTOnce, jobs.DSTSkip, jobs.DSTBoth}}
			},
		},
	}
}

func commandFields() []field[jobDraft] {
	return []field[jobDraft]{
		{
			key: "command", doc: "The program and its arguments; no shell. {{ .Period }}, {{ .ScheduledAt }} and {{ .Resource }} are replaced.",
			bind: func(d *jobDraft) sink { return list{into: &d.command, nodes: &d.commandNodes, raw: true, blank: true} },
		},
		{
			key: "run", doc: "A text for /bin/sh -c, instead of command. Nothing in it is replaced.",
			bind: func(d *jobDraft) sink { return text{into: &d.run, raw: true} },
		},
		{
			key: "env", shared: true, doc: "Environment variables of the process, beside the few that every job has.",
			bind: func(d *jobDraft) sink { return dictionary{into: &d.env, check: checkVariableName} },
		},
		{
			key: "timeout", initial: "0s", shared: true, doc: "How long a run may take; 0s is no limit.",
			bind: func(d *jobDraft) sink { return duration{into: &d.timeout} },
		},
		{
			key: "kill_after", initial: "10s", shared: true, doc: "How long a process that was asked to stop may go on before it is killed.",
			bind: func(d *jobDraft) sink { return duration{&d.killAfter, 0, time.Hour} },
		},
	}
}

func policyFields() []field[jobDraft] {
	return []field[jobDraft]{
		{
			key: "resource", doc: "The name that a run locks; the job's name unless set. YYYY-MM and the like are filled from the scheduled instant.",
			bind: func(d *jobDraft) sink { return text{into: &d.resource} },
		},
		{
			key: "resource_offset", doc: "Moves the date in the resource: -1mo is the month before the scheduled instant.",
			bind: func(d *jobDraft) sink { return text{into: &d.resourceOffset} },
		},
		{
			key: "overlap", initial: string(jobs.OverlapSkip), shared: true, doc: "What a due run does while an earlier one of the same job is unfinished.",
			bind: func(d *jobDraft) sink {
				return choice[jobs.Overlap]{&d.overlap, []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapQueue}, []jobs.Overlap{"replace", "allow"}}
			},
		},
		{
			key: "catch_up", shared: true, doc: "Which instants still run that fell due while no replica planned.",
			bind: func(d *jobDraft) sink {
				return group[jobs.CatchUp]{catchUpFields(), &d.catchUp, "{policy: latest, window: 1h}"}
			},
		},
		{
			key: "start_deadline", initial: "1h", shared: true, doc: "How long after its instant a run may still start; then it is missed.",
			bind: func(d *jobDraft) sink { return duration{into: &d.startDeadline, min: time.Second} },
		},
		{
			key: "on_lost", initial: string(jobs.OnLostFail), shared: true, doc: "What follows a run whose replica was lost: nothing, the next of three attempts, or a person.",
			bind: func(d *jobDraft) sink {
				return choice[jobs.OnLost]{into: &d.onLost, words: []jobs.OnLost{jobs.OnLostFail, jobs.OnLostRetry, jobs.OnLostHold}}
			},
		},
	}
}

func catchUpFields() []field[jobs.CatchUp] {
	return []field[jobs.CatchUp]{
		{
			key: "policy", initial: string(jobs.CatchUpLatest), doc: "none, the latest one, or all of them in order.",
			bind: func(c *jobs.CatchUp) sink {
				return choice[jobs.CatchUpPolicy]{into: &c.Policy, words: []jobs.CatchUpPolicy{jobs.CatchUpNone, jobs.CatchUpLatest, jobs.CatchUpAll}}
			},
		},
		{
			key: "window", initial: "1h", doc: "How old an instant may be.",
			bind: func(c *jobs.CatchUp) sink { return duration{into: &c.Window, min: time.Second} },
		},
		{
			key: "max", initial: "100", doc: "How many instants at most; the newest ones.",
			bind: func(c *jobs.CatchUp) sink { return number{&c.Max, 1, 10_000} },
		},
	}
}

// laterJobKeys are keys that the documentation of later versions knows.
func laterJobKeys() []string {
	return []string{
		"retry", "once_per", "http", "sql", "jitter", "notify", "exit_codes", "max_age", "secrets", "params", "ping", "user",
		"allow_root", "labels", "only_on", "from", "until", "day_match", "calendars", "after", "on_success", "on_failure",
		"on_abort", "history",
	}
}

func jobHint(key, where string) string { return notYet(key, where, laterJobKeys()) }

// defaultsHint says more about an unknown key in defaults.
func defaultsHint(key, where string) string {
	for _, f := range jobFields() {
		if f.key == key {
			return fmt.Sprintf("unknown key %q%s; each job sets it for itself", key, where)
		}
	}
	return jobHint(key, where)
}

// scheduleText is a sink for a schedule, which later versions take a list of.
type scheduleText struct{ text }

func (s scheduleText) read(r *reader, n *node, name string) {
	if n.kind == kindList {
		r.refuse(n, codeUnsupported, "a list of schedules is not supported by this version; write one job for each")
		return
	}
	s.text.read(r, n, name)
}

func checkZone(name string) error {
	_, err := jobs.LoadZone(name)
	var fault *jobs.ScheduleError
	if errors.As(err, &fault) {
		return &partError{part{fault.Offset, fault.Length}, fault.Code, fault.Message}
	}
	return err
}

func checkVariableName(name string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		return fmt.Errorf("%q cannot be the name of an environment variable; it must not be empty and holds no \"=\"", abbreviate(name))
	case strings.HasPrefix(name, "CRONLATCH_"):
		return fmt.Errorf("%s cannot be set: every run gets its own variables CRONLATCH_*", abbreviate(name))
	}
	return nil
}
