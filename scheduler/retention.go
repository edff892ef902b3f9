package scheduler

import (
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// DefaultHistory is kept of a job that says nothing else, when the configuration does not either.
//
//nolint:gochecknoglobals // a constant that Go cannot write as one
var DefaultHistory = jobs.History{Keep: 100, KeepFor: 90 * 24 * time.Hour}

// Keeping is what a replica knows of how long the history is kept. The zero value keeps DefaultHistory of every job.
type Keeping struct {
	// Default is for jobs that say nothing, and for those that no file defines any more.
	Default jobs.History
	Jobs    []*jobs.Job // after jobs.Link
}

// of is how much of a job's history is kept.
func (k *Keeping) of(job *jobs.Job) jobs.History {
	h := k.Default
	if job != nil {
		h = orHistory(job.History, h)
	}
	return orHistory(h, DefaultHistory)
}

func orHistory(h, otherwise jobs.History) jobs.History {
	if h.Keep == 0 {
		h.Keep = otherwise.Keep
	}
	if h.KeepFor == 0 {
		h.KeepFor = otherwise.KeepFor
	}
	return h
}

func (k *Keeping) byName() map[string]*jobs.Job {
	m := make(map[string]*jobs.Job, len(k.Jobs))
	for _, j := range k.Jobs {
		m[j.Name] = j
	}
	return m
}

// fanIn is a job that comes after several ones: as long as it waits, it needs those of their runs that have ended.
type fanIn struct {
	Job      string   `json:"job"`
	Upstream []string `json:"upstream"` // the others that it waits for
	ByPeriod bool     `json:"by_period"`
}

// fanInsOf are the jobs with several upstream jobs, by the name of each of these.
func fanInsOf(known []*jobs.Job) map[string][]fanIn {
	fans := map[string][]fanIn{}
	for up, list := range followersOf(known) {
		for _, f := range list {
			if len(f.job.After) < 2 {
				continue
			}
			fan := fanIn{Job: f.job.Name, ByPeriod: f.byPeriod}
			for _, a := range f.job.After {
				if a.Job != up {
					fan.Upstream = append(fan.Upstream, a.Job)
				}
			}
			fans[up] = append(fans[up], fan)
		}
	}
	return fans
}
