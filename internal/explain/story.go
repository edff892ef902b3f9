package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
)

// Kind is what a step is about.
type Kind string

// The kinds.
const (
	Planned  Kind = "planned"
	Waiting  Kind = "waiting"
	Blocked  Kind = "blocked"
	Claimed  Kind = "claimed"
	Started  Kind = "started"
	Renewed  Kind = "renewed"
	Lost     Kind = "lost"
	Retried  Kind = "retried"
	Finished Kind = "finished"
	Followed Kind = "followed"
	Future   Kind = "future"
	Hint     Kind = "hint" // what helps to understand the rest
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{Planned, Waiting, Blocked, Claimed, Started, Renewed, Lost, Retried, Finished, Followed, Future, Hint}
}

// Step is one sentence.
type Step struct {
	At      time.Time // zero: it is no event
	Kind    Kind
	Text    string
	RunID   int64 // 0 is none, like every zero value below
	Replica string
	Token   int64
	Reason  jobs.Reason
	Facts   map[string]any // the detail of the run, as the ledger has it
}

// Story is the answer.
type Story struct {
	Job         string
	RunID       int64  // 0: the ledger has no run
	Occurrence  string // "" likewise
	ScheduledAt time.Time
	Timezone    string // "": the job has no schedule that is known here
	State       jobs.State
	Outcome     jobs.Outcome
	Reason      jobs.Reason
	Verdict     string // one sentence
	Steps       []Step
	Next        []string // what to type
}

// Tell makes a story of the facts.
func Tell(f *Facts) *Story {
	t := &teller{f: f, zone: time.UTC, s: Story{Job: f.Job, Steps: []Step{}, Next: []string{}}}
	if f.Definition != nil && f.Definition.Schedule != nil {
		t.zone = f.Definition.Schedule.Location()
		t.s.Timezone = t.zone.String()
	}
	t.tell()
	t.s.Verdict = output.Clean(t.s.Verdict)
	return &t.s
}

// teller makes one story.
type teller struct {
	f    *Facts
	zone *time.Location
	s    Story
}

func (t *teller) tell() {
	t.aboutTheQuestion()
	switch {
	case t.f.Run != nil:
		t.aboutTheRun()
	case !t.f.Instant.IsZero():
		t.s.ScheduledAt = t.f.Instant.UTC()
		t.aboutTheInstant()
	case t.f.Question.At.IsZero():
		t.never()
		t.aboutTheFuture()
	default:
		t.nothingBefore()
	}
}

func (t *teller) aboutTheRun() {
	run := t.f.Run
	t.s.RunID, t.s.Occurrence, t.s.ScheduledAt = run.ID, run.Occurrence, run.ScheduledAt.UTC()
	t.s.State, t.s.Outcome, t.s.Reason = run.State, run.Outcome, run.Reason
	if t.s.Verdict == "" {
		t.s.Verdict = t.verdictOf(run)
	} else {
		t.step(time.Time{}, Hint, run, "%s", t.verdictOf(run))
	}
	for i := range t.f.Attempts {
		t.attempt(&t.f.Attempts[i])
	}
	t.downstream()
	if n := t.f.Newest; n != nil && t.f.Question.RunID == 0 && t.f.Question.At.IsZero() && n.Occurrence != run.Occurrence {
		t.step(n.CreatedAt, Hint, n, "Since then: %s", t.verdictOf(n))
	}
	if t.f.Question.RunID == 0 && t.f.Question.At.IsZero() {
		t.aboutTheFuture()
	}
	t.typeForRun(run)
}

// verdict is written once: the first one counts.
func (t *teller) verdict(format string, args ...any) {
	if t.s.Verdict == "" {
		t.s.Verdict = fmt.Sprintf(format, args...)
	}
}

// step adds a sentence; run may be nil.
func (t *teller) step(at time.Time, kind Kind, run *jobs.Run, format string, args ...any) *Step {
	s := Step{Kind: kind, Text: output.Clean(fmt.Sprintf(format, args...))}
	if !at.IsZero() {
		s.At = at.UTC()
	}
	if run != nil {
		s.RunID = run.ID
	}
	t.s.Steps = append(t.s.Steps, s)
	return &t.s.Steps[len(t.s.Steps)-1]
}

func (t *teller) next(format string, args ...any) {
	line := output.Clean(fmt.Sprintf(format, args...))
	if !slices.Contains(t.s.Next, line) {
		t.s.Next = append(t.s.Next, line)
	}
}
