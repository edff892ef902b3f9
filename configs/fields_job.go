package configs

import (
	"fmt"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// jobDraft is a job, or the defaults of all jobs, as it is read.
type jobDraft struct {
	name string
	key  *node   // of the job in the map of jobs
	at   present // the keys that the job itself has

	when                     scheduleDraft
	command                  []string
	commandNodes             []*node
	run                      string
	http                     httpDraft
	sql                      sqlDraft
	env                      map[string]string
	timeout, killAfter       time.Duration
	resource, resourceOffset string
	overlap                  jobs.Overlap
	catchUp                  jobs.CatchUp
	startDeadline            time.Duration
	onLost                   jobs.OnLost
	policies                 policyDraft
	chain                    chainDraft
	enabled                  bool
	description              string
	tags                     []string
	hear                     hearDraft
	params                   map[string]*paramDraft
	secrets                  map[string]jobs.Secret
	user                     string
	allowRoot                bool
	history                  jobs.History
}

// jobFields is the table of a job's keys; those marked shared may be set for all jobs in defaults.
func jobFields() []field[jobDraft] {
	return slices.Concat(scheduleFields(), chainFields(), commandFields(), accountFields(), policyFields(), onlyOnFields(), hearFields())
}

// sharedFields is the table of the keys in defaults.
func sharedFields() []field[jobDraft] {
	return slices.DeleteFunc(jobFields(), func(f field[jobDraft]) bool { return !f.shared })
}

func jobHint(key, where string) string {
	if key == "labels" {
		return fmt.Sprintf("unknown key %q%s; labels are a replica's, at the top of the file, and a job asks for them with only_on", key, where)
	}
	return ""
}

// defaultsHint says more about an unknown key in defaults.
func defaultsHint(key, where string) string {
	for _, f := range jobFields() {
		if f.key == key {
			return fmt.Sprintf("unknown key %q%s; each job sets it for itself", key, where)
		}
	}
	return jobHint(key, where)
}
