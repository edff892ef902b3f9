package wire

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// Job is a definition, and what the ledger says of it. Durations are Go's, without zeros at the end. Of a job that is not
// defined here only the name and the state are known: the rest is empty or null.
type Job struct {
	Name          string      `json:"name"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`     // never null, like every list here
	Schedule      *string     `json:"schedule"` // null: runs after others, or by hand
	Timezone      *string     `json:"timezone"`
	After         []JobAfter  `json:"after"`
	HookOf        *string     `json:"hook_of"` // null: a job of its own
	Enabled       bool        `json:"enabled"`
	Resource      string      `json:"resource"`
	Next          *time.Time  `json:"next"` // null: disabled, without a schedule, or never again
	Overlap       string      `json:"overlap"`
	CatchUp       JobCatchUp  `json:"catch_up"`
	OnLost        string      `json:"on_lost"`
	Timeout       *string     `json:"timeout"` // null: none
	KillAfter     string      `json:"kill_after"`
	StartDeadline *string     `json:"start_deadline"` // null: none
	MaxAge        *string     `json:"max_age"`        // null: none
	OnlyOn        jobs.Labels `json:"only_on"`        // null: any replica

	Defined        bool           `json:"defined"`         // by the process that answers
	ScheduleLimits *string        `json:"schedule_limits"` // null: its text says all
	Jitter         *string        `json:"jitter"`          // null: none
	LateAfter      *string        `json:"late_after"`      // null: never late
	OncePer        string         `json:"once_per"`
	Attempts       int            `json:"attempts"` // at most, of one occurrence
	Limits         map[string]int `json:"limits"`   // never null: runs at a time, by tag
	Kind           string         `json:"kind"`     // command, run, http or sql
	Env            []string       `json:"env"`      // names only, like the secrets
	Secrets        []string       `json:"secrets"`
	Params         []JobParam     `json:"params"` // by name

	State *JobState `json:"state"` // null: the database was not asked
}

// JobAfter is a job that another one comes after.
type JobAfter struct {
	Job string `json:"job"`
	On  string `json:"on"`
}

// JobCatchUp is what becomes of instants that nobody planned.
type JobCatchUp struct {
	Policy string `json:"policy"`
	Window string `json:"window"`
	Max    int    `json:"max"`
}

// JobParam is what a manual run may be given.
type JobParam struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Type        string   `json:"type"`
	Pattern     *string  `json:"pattern"` // null: any text
	Enum        []string `json:"enum"`    // empty: anything
	Default     *string  `json:"default"` // null: must be given
}

// JobState is what the ledger and the pauses say of a job.
type JobState struct {
	Paused         *Pause `json:"paused"`          // null: it is not; of all jobs when the pause's job is null
	LastRun        *Run   `json:"last_run"`        // the newest that has ended
	LastSuccess    *Run   `json:"last_success"`    // the newest that has succeeded
	Unfinished     int    `json:"unfinished"`      // pending, running or held runs
	UnfinishedRuns []Run  `json:"unfinished_runs"` // the oldest of them
}

// JobPage is a page of the list of jobs.
type JobPage struct {
	Jobs       []Job  `json:"jobs"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// Instants are when a job's schedule fires next.
type Instants struct {
	Job      string    `json:"job"`
	Timezone *string   `json:"timezone"` // null: it has no schedule
	Instants []Instant `json:"instants"`
}

// Instant is one of them. Local is the same instant with the offset of the job's zone; DueAt is later by the jitter.
type Instant struct {
	At    time.Time `json:"at"`
	Local string    `json:"local"`
	DueAt time.Time `json:"due_at"`
}

// JobOf is a definition as the API shows it, without its state.
func JobOf(j *jobs.Job, now time.Time) Job {
	v := Job{
		Name: j.Name, Description: j.Description, Tags: append([]string{}, j.Tags...), Enabled: j.Enabled,
		Resource: j.Resource.String(), Next: NextRun(j, now), Overlap: string(j.Overlap), OnLost: string(j.OnLost),
		CatchUp: JobCatchUp{string(j.CatchUp.Policy), DurationText(j.CatchUp.Window), j.CatchUp.Max},
		Timeout: durationOrNull(j.Timeout), KillAfter: DurationText(j.KillAfter), StartDeadline: durationOrNull(j.StartDeadline),
		MaxAge: durationOrNull(j.MaxAge), OnlyOn: j.OnlyOn, After: []JobAfter{}, HookOf: OrNull(j.HookOf),
		Defined: true, Jitter: durationOrNull(j.Jitter), LateAfter: durationOrNull(j.LateAfter), OncePer: string(j.OncePer),
		Attempts: j.MaxAttempts(), Limits: map[string]int{}, Kind: kindOf(j), Params: paramsOf(j),
		Env: append([]string{}, slices.Sorted(maps.Keys(j.Env))...), Secrets: append([]string{}, slices.Sorted(maps.Keys(j.Secrets))...),
	}
	maps.Copy(v.Limits, j.Limits)
	if v.OncePer == "" {
		v.OncePer = string(jobs.OncePerOccurrence)
	}
	for _, a := range j.After {
		v.After = append(v.After, JobAfter{a.Job, string(a.On)})
	}
	if j.Schedule != nil {
		v.Schedule, v.Timezone = new(j.Schedule.String()), new(j.Schedule.Location().String())
		v.ScheduleLimits = OrNull(j.Schedule.Limits())
	}
	return v
}

// JobElsewhere is a job that this process does not know.
func JobElsewhere(name string) Job {
	return Job{
		Name: name, Tags: []string{}, After: []JobAfter{}, Limits: map[string]int{}, Env: []string{}, Secrets: []string{}, Params: []JobParam{},
	}
}

// JobStateOf is the state as the API shows it; s may be nil: there are no runs.
func JobStateOf(s *jobs.JobState, paused *Pause) *JobState {
	v := &JobState{Paused: paused, UnfinishedRuns: []Run{}}
	if s == nil {
		return v
	}
	v.Unfinished = max(s.Waiting, len(s.Unfinished)) // they were read one after the other
	if s.Last != nil {
		v.LastRun = new(RunOf(s.Last))
	}
	if s.LastSuccess != nil {
		v.LastSuccess = new(RunOf(s.LastSuccess))
	}
	for i := range s.Unfinished {
		v.UnfinishedRuns = append(v.UnfinishedRuns, RunOf(&s.Unfinished[i]))
	}
	return v
}

// InstantsOf are the next instants of a job's schedule after a time, at most n.
func InstantsOf(j *jobs.Job, after time.Time, n int) Instants {
	v := Instants{Job: j.Name, Instants: []Instant{}}
	if j.Schedule == nil {
		return v
	}
	v.Timezone = new(j.Schedule.Location().String())
	for at := j.Schedule.Next(after); len(v.Instants) < n && !at.IsZero(); at = j.Schedule.Next(at) {
		v.Instants = append(v.Instants, Instant{
			At: at.UTC(), Local: at.In(j.Schedule.Location()).Format("2006-01-02T15:04:05-07:00"), DueAt: j.DueAt(at).UTC(),
		})
	}
	return v
}

// NextRun is nil when the schedule never fires again, and for jobs that run after others, only by hand, or not at all.
func NextRun(j *jobs.Job, now time.Time) *time.Time {
	if !j.Enabled || j.Schedule == nil {
		return nil
	}
	next := j.Schedule.Next(now)
	if next.IsZero() {
		return nil
	}
	return new(next.UTC())
}

// DurationText is Go's form without its zeros: 1h30m, not 1h30m0s.
func DurationText(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

func durationOrNull(d time.Duration) *string {
	if d == 0 {
		return nil
	}
	return new(DurationText(d))
}

func kindOf(j *jobs.Job) string {
	switch {
	case j.HTTP != nil:
		return "http"
	case j.SQL != nil:
		return "sql"
	case j.Run != "":
		return "run"
	default:
		return "command"
	}
}

func paramsOf(j *jobs.Job) []JobParam {
	params := []JobParam{}
	for _, name := range slices.Sorted(maps.Keys(j.Params)) {
		p := j.Params[name]
		params = append(params, JobParam{
			Name: name, Description: p.Description, Type: string(p.Type), Pattern: OrNull(p.Pattern),
			Enum: append([]string{}, p.Enum...), Default: p.Default,
		})
	}
	return params
}
