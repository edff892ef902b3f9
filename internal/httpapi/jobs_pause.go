package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

func pauseRoutes() []route {
	return []route{
		{http.MethodPost, "/jobs/pause", accessOperate, "pauseJobs", pauseJobs},
		{http.MethodPost, "/jobs/resume", accessOperate, "resumeJobs", resumeJobs},
		{http.MethodPost, "/jobs/{job}/pause", accessOperate, "pauseJob", pauseJob},
		{http.MethodPost, "/jobs/{job}/resume", accessOperate, "resumeJob", resumeJob},
		{http.MethodGet, "/pauses", accessRead, "listPauses", listPauses},
	}
}

// The limits of what one call pauses, and for how long.
const (
	maxPausedJobs   = 1000
	maxPauseSeconds = int64(100 * 366 * 24 * time.Hour / time.Second)
)

// allJobs is the name under which all jobs are paused.
const allJobs = ""

// pauseJob pauses one job, also one that only other replicas know.
func pauseJob(c *call) error {
	return c.pausing([]string{"reason", "until", "for_seconds"}, func(*fields) (selected, error) {
		return selected{names: []string{c.segment("job")}}, nil
	})
}

// pauseJobs pauses several: by their names, by a tag, or all.
func pauseJobs(c *call) error {
	return c.pausing([]string{"jobs", "tag", "all", "reason", "until", "for_seconds"}, c.selection)
}

// selected are the jobs that a call is about.
type selected struct {
	names []string // allJobs is all
	tag   string   // by which they were chosen; "" is by name
}

// selection reads jobs, tag or all. A tag means the jobs that have it now, by the definitions of this process.
func (c *call) selection(f *fields) (s selected, err error) {
	ways := 0
	for _, way := range []string{"jobs", "tag", "all"} {
		if _, there := f.given[way]; there {
			ways++
		}
	}
	s.names, s.tag = f.names("jobs"), f.optional("tag", locking.MaxReasonBytes)
	all := f.boolean("all")
	if f.wrong == nil && (ways != 1 || s.names == nil && s.tag == "" && !all) {
		f.add("jobs", "required", "or tag, or all with the value true is needed, and only one of them")
	}
	if f.wrong != nil {
		return s, f.problem()
	}
	if all {
		return selected{names: []string{allJobs}}, nil
	}
	if s.tag == "" {
		return s, nil
	}
	var tags []string
	for _, j := range c.knownJobs() {
		tags = append(tags, j.Tags...)
		if slices.Contains(j.Tags, s.tag) {
			s.names = append(s.names, j.Name)
		}
	}
	if s.names == nil {
		return s, &problem{
			Status: http.StatusNotFound, Code: "not_found",
			Detail: fmt.Sprintf("no job that is defined here has the tag %q%s", shortened(s.tag), suggestion(shortened(s.tag), tags)),
		}
	}
	return s, nil
}

// names is a list of names, each kept once; nil when there is none.
func (f *fields) names(key string) (names []string) {
	v, ok := f.value(field{key, false, "[", "a list of names"})
	if !ok {
		return nil
	}
	var list []*string
	if err := json.Unmarshal(v, &list); err != nil || len(list) == 0 || len(list) > maxPausedJobs {
		f.add(key, "invalid", "must be a list of 1 to %d names", maxPausedJobs)
		return nil
	}
	for _, name := range list {
		switch {
		case name == nil || *name == "" || strings.Contains(*name, "\x00"):
			f.add(key, "invalid", "has an item that is no name")
			return nil
		case !slices.Contains(names, *name):
			names = append(names, *name)
		}
	}
	return names
}

// pausing is what all calls that pause have in common.
func (c *call) pausing(known []string, choose func(*fields) (selected, error)) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	given, err := c.body(known...)
	if err != nil {
		return err
	}
	f := &fields{given: given}
	r := scheduler.PauseRequest{Reason: f.optional("reason", locking.MaxReasonBytes), By: c.actor()}
	_, until := given["until"]
	_, span := given["for_seconds"]
	if until {
		r.Until = f.instant("until")
	}
	if span {
		r.For = time.Duration(f.integer(field{name: "for_seconds"}, maxPauseSeconds)) * time.Second
	}
	if until && span {
		f.add("for_seconds", "invalid", "and until cannot be given both")
	}
	s, err := choose(f)
	if err == nil {
		err = f.problem()
	}
	if err != nil {
		return err
	}
	r.Jobs, r.Tag = s.names, s.tag
	var paused []scheduler.Paused
	err = c.onPauses(audit.JobPause, s, r.Reason, func(ctx context.Context, p *scheduler.Pauses) (err error) {
		if err := c.allKnown(ctx, p, s); err != nil {
			return err
		}
		paused, err = p.Pause(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	answer := wire.PausedList{Pauses: []wire.Paused{}}
	for i := range paused {
		answer.Pauses = append(answer.Pauses, wire.Paused{Pause: wire.PauseOf(&paused[i].Pause), Before: paused[i].Before})
	}
	writeJSON(c.w, "application/json", http.StatusOK, answer)
	return nil
}

// allKnown refuses a name that is neither defined here nor was ever planned or run: most likely it is mistyped.
func (c *call) allKnown(ctx context.Context, p *scheduler.Pauses, s selected) error {
	if s.tag != "" {
		return nil
	}
	var here []string
	for _, j := range c.knownJobs() {
		here = append(here, j.Name)
	}
	for _, name := range s.names {
		if name == allJobs || slices.Contains(here, name) {
			continue
		}
		known, err := p.Known(ctx, name)
		if err != nil {
			return fmt.Errorf("looking for a job: %w", err)
		}
		if known {
			continue
		}
		planned, err := p.Planned(ctx)
		if err != nil {
			return fmt.Errorf("looking for jobs: %w", err)
		}
		unknown := noJob(name, append(here, planned...))
		unknown.Detail += "; nothing was paused"
		return unknown
	}
	return nil
}

func resumeJob(c *call) error {
	return c.resuming(nil, func(*fields) (selected, error) { return selected{names: []string{c.segment("job")}}, nil })
}

func resumeJobs(c *call) error { return c.resuming([]string{"jobs", "tag", "all"}, c.selection) }

// resuming ends pauses, and answers with what is still paused after it, too: that is why the jobs may not run yet.
func (c *call) resuming(known []string, choose func(*fields) (selected, error)) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	given, err := c.body(known...)
	if err != nil {
		return err
	}
	s, err := choose(&fields{given: given})
	if err != nil {
		return err
	}
	var resumed []string
	var still []scheduler.Pause
	err = c.onPauses(audit.JobResume, s, "", func(ctx context.Context, p *scheduler.Pauses) (err error) {
		if resumed, err = p.ResumeTagged(ctx, s.names, c.actor(), s.tag); err != nil {
			return err
		}
		still, err = p.Active(ctx)
		return err
	})
	if err != nil {
		return err
	}
	answer := wire.Resumed{Jobs: []string{}, NotPaused: []string{}, All: slices.Contains(resumed, allJobs), Still: wire.PausesOf(still)}
	for _, name := range s.names {
		switch {
		case name == allJobs:
		case slices.Contains(resumed, name):
			answer.Jobs = append(answer.Jobs, name)
		default:
			answer.NotPaused = append(answer.NotPaused, name)
		}
	}
	writeJSON(c.w, "application/json", http.StatusOK, answer)
	return nil
}

// onPauses does something with the pauses, and leaves a line in the audit for each job, or one for all.
func (c *call) onPauses(action audit.Action, s selected, reason string, do func(context.Context, *scheduler.Pauses) error) error {
	ctx, cancel := c.writing()
	defer cancel()
	err := c.checked(ctx)
	if err == nil {
		var p *scheduler.Pauses
		if p, err = scheduler.OpenPauses(c.o.Fleet.DB); err == nil {
			err = do(ctx, p)
		}
	}
	answer := c.pauseFailed(err)
	for _, name := range s.names {
		fields := append(c.auditFields(), audit.Operation(c.route.operation))
		if name != allJobs {
			fields = append(fields, audit.Job(name))
		}
		if s.tag != "" {
			fields = append(fields, audit.Tag(s.tag))
		}
		if reason != "" {
			fields = append(fields, audit.Reason(reason))
		}
		audit.Log(c.audit, action, actionOutcome(answer), fields...)
	}
	if answer == nil && c.o.Fleet.Wake != nil {
		c.o.Fleet.Wake()
	}
	return answer
}

// pauseFailed turns what went wrong into an answer; nil stays nil.
func (c *call) pauseFailed(err error) error {
	if errors.Is(err, scheduler.ErrPast) {
		return &problem{
			Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: "some of what was sent cannot be used",
			Errors: []fieldError{{"until", "range", "has passed; nothing was paused"}},
		}
	}
	return c.fleetFailed(err)
}

// fleetFailed lets an answer be, and makes one of any other error; nil stays nil.
func (c *call) fleetFailed(err error) error {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	return c.runFailed(err)
}

func listPauses(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	var active []scheduler.Pause
	err := c.runs(func(ctx context.Context, _ *jobs.Ledger) error {
		p, err := scheduler.OpenPauses(c.o.Fleet.DB)
		if err != nil {
			return fmt.Errorf("reading the pauses: %w", err)
		}
		active, err = p.Active(ctx)
		return err
	})
	if err != nil {
		return err
	}
	writeJSON(c.w, "application/json", http.StatusOK, wire.PauseList{Pauses: wire.PausesOf(active)})
	return nil
}
