package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// chainText says what a job comes after: "after extract (success), clean (always)", "on failure of backup:db".
func chainText(j *wire.Job) string {
	if j.HookOf != nil {
		return fmt.Sprintf("on %s of %s", j.After[0].On, *j.HookOf)
	}
	ends := make([]string, len(j.After))
	for i, a := range j.After {
		ends[i] = fmt.Sprintf("%s (%s)", a.Job, a.On)
	}
	return "after " + strings.Join(ends, ", ")
}

// noScheduleOfItsOwn names the job at the head of the chain.
func noScheduleOfItsOwn(config *configs.Config, j *jobs.Job) error {
	head := j
	for head != nil && len(head.After) > 0 {
		head, _ = config.Job(head.After[0].Job) // a chain has an end, and every job in it is known, or nothing was loaded
	}
	sentence := fail(exitFailure, "the job %q has no schedule: it runs %s", j.Name, chainText(new(wire.JobOf(j, time.Time{}))))
	if head.Schedule == nil {
		return sentence.withHint("`cronlatch run %s` runs %s by hand", head.Name, head.Name)
	}
	return sentence.withHint("`cronlatch next %s` shows when that one fires", head.Name)
}

// countedJobs counts jobs, and their hooks beside them.
func countedJobs(all []*jobs.Job) string {
	hooks := 0
	for _, j := range all {
		if j.HookOf != "" {
			hooks++
		}
	}
	text := counted(len(all)-hooks, "job")
	if hooks > 0 {
		text += " and " + counted(hooks, "hook")
	}
	return text
}
