package scheduler

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// followers are the jobs that come after others, by the name of each job that they come after.
type followers map[string][]*follower

// follower is a job that comes after others.
type follower struct {
	job *jobs.Job
	// byPeriod says that the runs it waits for belong together by their period, and not by their occurrence.
	byPeriod bool
}

func followersOf(known []*jobs.Job) followers {
	byName := make(map[string]*jobs.Job, len(known))
	for _, j := range known {
		byName[j.Name] = j
	}
	f := followers{}
	for _, j := range known {
		if len(j.After) == 0 {
			continue
		}
		next := &follower{job: j, byPeriod: len(j.After) > 1}
		for _, a := range j.After {
			if up := byName[a.Job]; up == nil || up.Resource.PeriodForm() == "" {
				next.byPeriod = false
			}
		}
		for _, a := range j.After {
			f[a.Job] = append(f[a.Job], next)
		}
	}
	return f
}

// meeting is what the runs have in common that a follower of several jobs waits for; one of the two is empty.
type meeting struct {
	Occurrence string
	Period     string
}

// meets is where a run takes part. It is false for a run by hand, which no run of another job belongs to, and for one that
// was planned when its resource had no date.
func (f *follower) meets(r *jobs.Run) (meeting, bool) {
	switch {
	case strings.HasPrefix(r.Occurrence, jobs.ManualOccurrence("")):
		return meeting{}, false
	case f.byPeriod:
		return meeting{Period: r.Period}, r.Period != ""
	default:
		return meeting{Occurrence: r.Occurrence}, true
	}
}

// after is what becomes of the follower of a single job when run has ended.
func (f *follower) after(run *jobs.Run) []jobs.NewRun {
	return f.decide(run.Occurrence, []*jobs.Run{run})
}

// afterAll is what becomes of the follower of several jobs. ended are those of the runs it waits for that have ended, by
// job. The first that did not end as it should decides; while there is none, all are waited for.
func (f *follower) afterAll(m meeting, ended map[string]*jobs.Run) []jobs.NewRun {
	var runs []*jobs.Run
	failed := false
	for _, a := range f.job.After {
		if run := ended[a.Job]; run != nil {
			runs = append(runs, run)
			failed = failed || !a.On.Met(run.Outcome)
		}
	}
	if len(runs) < len(f.job.After) && !failed {
		return nil
	}
	occurrence := m.Occurrence
	if m.Period != "" {
		occurrence = jobs.PeriodOccurrence(m.Period)
	}
	return f.decide(occurrence, runs)
}

// decide makes the row that follows runs: one or none.
func (f *follower) decide(occurrence string, runs []*jobs.Run) []jobs.NewRun {
	s := jobs.Successor{Occurrence: occurrence}
	facts := followFacts{}
	met := true
	for _, r := range runs {
		on := f.on(r.Job)
		met = met && on.Met(r.Outcome)
		followed := jobs.Followed{Job: r.Job, RunID: r.ID, Outcome: r.Outcome, Reason: r.Reason}
		s.Runs = append(s.Runs, followed)
		s.ScheduledAt, s.DueAt = latest(s.ScheduledAt, r.ScheduledAt), latest(s.DueAt, *r.FinishedAt)
		// A caught-up run waits from its first attempt on, others only from the second.
		s.CaughtUp = s.CaughtUp || r.Overlap == jobs.RuleWait && r.Attempt == 1
		facts.add(followed, on, r)
	}
	switch {
	case !met && f.job.HookOf != "":
		return nil
	case !f.job.Enabled:
		return []jobs.NewRun{f.job.SkippedRun(s, jobs.ReasonDisabled, detail(facts))}
	case !met:
		return []jobs.NewRun{f.job.SkippedRun(s, jobs.ReasonUpstream, detail(facts))}
	default:
		return []jobs.NewRun{f.job.FollowingRun(s)}
	}
}

func (f *follower) on(job string) jobs.AfterOn {
	return f.job.After[slices.IndexFunc(f.job.After, func(a jobs.After) bool { return a.Job == job })].On
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// followFacts say why a follower does not run.
type followFacts map[string]any

// add tells of one run. A row that stands for many instants passes on which: the follower's row stands for as many.
func (f followFacts) add(run jobs.Followed, on jobs.AfterOn, r *jobs.Run) {
	upstream, _ := f["upstream"].([]followedFacts)
	f["upstream"] = append(upstream, followedFacts{run, on})
	var many map[string]json.RawMessage
	if json.Unmarshal(r.Detail, &many) != nil {
		return
	}
	for _, key := range []string{"missed_from", "missed_until", "missed_count"} {
		if value := many[key]; value != nil {
			f[key] = value
		}
	}
}

type followedFacts struct {
	jobs.Followed

	On jobs.AfterOn `json:"on"`
}
