package wire

import (
	"time"

	"github.com/cronlatch/cronlatch/scheduler"
)

// Pause is a span in which a job's schedule starts nothing.
type Pause struct {
	Job    *string    `json:"job"` // null: all jobs
	From   time.Time  `json:"from"`
	Until  *time.Time `json:"until"` // null: until it is resumed
	By     string     `json:"by"`
	Reason string     `json:"reason"`
}

// Paused is a pause as a request has left it.
type Paused struct {
	Pause

	Before bool `json:"before"` // it was there already
}

// PauseRequest is the body of a pause; Jobs, Tag and All are for POST /jobs/pause only.
type PauseRequest struct {
	Jobs       []string   `json:"jobs,omitempty"`
	Tag        string     `json:"tag,omitempty"`
	All        bool       `json:"all,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	ForSeconds int64      `json:"for_seconds,omitempty"`
}

// ResumeRequest is the body of POST /jobs/resume.
type ResumeRequest struct {
	Jobs []string `json:"jobs,omitempty"`
	Tag  string   `json:"tag,omitempty"`
	All  bool     `json:"all,omitempty"`
}

// PauseList is the answer to GET /pauses.
type PauseList struct {
	Pauses []Pause `json:"pauses"`
}

// PausedList is the answer to a pause.
type PausedList struct {
	Pauses []Paused `json:"pauses"`
}

// Resumed is the answer to a resume.
type Resumed struct {
	Jobs      []string `json:"jobs"`       // whose pauses have ended
	NotPaused []string `json:"not_paused"` // that were asked for and had none of their own
	All       bool     `json:"all"`        // the pause of all jobs has ended
	Still     []Pause  `json:"still"`      // what is paused after it
}

// PauseOf is a pause as the API shows it.
func PauseOf(p *scheduler.Pause) Pause {
	v := Pause{Job: OrNull(p.Job), From: p.From.UTC(), By: p.By, Reason: p.Reason}
	if !p.Until.IsZero() {
		v.Until = new(p.Until.UTC())
	}
	return v
}

// PausesOf are pauses as the API shows them.
func PausesOf(pauses []scheduler.Pause) []Pause {
	views := make([]Pause, len(pauses))
	for i := range pauses {
		views[i] = PauseOf(&pauses[i])
	}
	return views
}
