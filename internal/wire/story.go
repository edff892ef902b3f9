package wire

import (
	"time"

	"github.com/cronlatch/cronlatch/internal/explain"
)

// Story is why something ran, did not run, or will.
type Story struct {
	Job         string      `json:"job"`
	RunID       *int64      `json:"run_id"`     // null: the ledger has no run
	Occurrence  *string     `json:"occurrence"` // likewise
	ScheduledAt *time.Time  `json:"scheduled_at"`
	Timezone    *string     `json:"timezone"` // null: no schedule of the job is known here
	State       *string     `json:"state"`
	Outcome     *string     `json:"outcome"`
	Reason      *string     `json:"reason"`
	Verdict     string      `json:"verdict"`
	Steps       []StoryStep `json:"steps"` // never null
	Next        []string    `json:"next"`  // commands to type; never null
}

// StoryStep is one sentence of a story.
type StoryStep struct {
	At           *time.Time     `json:"at"` // null: it is no event
	Kind         string         `json:"kind"`
	Text         string         `json:"text"`
	RunID        *int64         `json:"run_id"`
	Replica      *string        `json:"replica"`
	FencingToken *int64         `json:"fencing_token"`
	Reason       *string        `json:"reason"`
	Facts        map[string]any `json:"facts"` // never null: what the ledger has behind the reason
}

// StoryOf is a story as the API shows it.
func StoryOf(s *explain.Story) Story {
	v := Story{
		Job: s.Job, RunID: OrNull(s.RunID), Occurrence: OrNull(s.Occurrence), Timezone: OrNull(s.Timezone), State: OrNull(string(s.State)),
		Outcome: OrNull(string(s.Outcome)), Reason: OrNull(string(s.Reason)), Verdict: s.Verdict,
		Steps: []StoryStep{}, Next: append([]string{}, s.Next...),
	}
	if !s.ScheduledAt.IsZero() {
		v.ScheduledAt = new(s.ScheduledAt.UTC())
	}
	for i := range s.Steps {
		v.Steps = append(v.Steps, stepOf(&s.Steps[i]))
	}
	return v
}

func stepOf(s *explain.Step) StoryStep {
	v := StoryStep{
		Kind: string(s.Kind), Text: s.Text, RunID: OrNull(s.RunID), Replica: OrNull(s.Replica), FencingToken: OrNull(s.Token),
		Reason: OrNull(string(s.Reason)), Facts: s.Facts,
	}
	if v.Facts == nil {
		v.Facts = map[string]any{}
	}
	if !s.At.IsZero() {
		v.At = new(s.At.UTC())
	}
	return v
}
