package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

// maxRequestID bounds a caller's idempotency key, which becomes part of the run's occurrence.
const maxRequestID = 200

// startRun makes a manual run: 201, or 200 with the first one when the request id was there before.
func startRun(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	given, err := c.body("params", "request_id", "reason")
	if err != nil {
		return err
	}
	f := &fields{given: given}
	r := scheduler.StartRequest{
		Params: f.params(), RequestID: f.optional("request_id", maxRequestID), Reason: f.optional("reason", locking.MaxReasonBytes), By: c.actor(),
	}
	if err := f.problem(); err != nil {
		return err
	}
	if r.Job, err = c.knownJob(); err != nil {
		return err
	}
	if wait := c.starts.wait(c.actor()); wait > 0 {
		return tooMany(wait)
	}
	var run jobs.Run
	var created bool
	err = c.act(audit.RunTrigger, &run, r.Reason, func(ctx context.Context, a *scheduler.Actions) (err error) {
		run, created, err = a.Start(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	writeJSON(c.w, "application/json", status, wire.RunOf(&run))
	return nil
}

// knownJob is the job in the path, by the definitions of this process.
func (c *call) knownJob() (*jobs.Job, error) {
	name := c.segment("job")
	var names []string
	for _, j := range c.knownJobs() {
		if j.Name == name {
			return j, nil
		}
		names = append(names, j.Name)
	}
	if len(name) > shownBytes {
		name = strings.ToValidUTF8(name[:shownBytes], "") + "..."
	}
	detail := fmt.Sprintf("no job %q is defined here%s", name, suggestion(name, names))
	if c.o.Fleet.Jobs == nil {
		detail = "no jobs are defined here: there is no configuration that could be read"
	}
	return nil, &problem{Status: http.StatusNotFound, Code: "not_found", Detail: detail}
}

// act does something with runs, wakes the scheduler, and leaves a line in the audit.
func (c *call) act(action audit.Action, run *jobs.Run, reason string, do func(context.Context, *scheduler.Actions) error) error {
	ctx, cancel := c.writing()
	defer cancel()
	err := c.checked(ctx)
	if err == nil {
		var a *scheduler.Actions
		if a, err = scheduler.OpenActions(c.o.Fleet.DB, c.o.Fleet.Observe...); err == nil {
			err = do(ctx, a)
		}
	}
	fields := c.auditFields()
	if run.Job != "" {
		fields = append(fields, audit.Job(run.Job))
	}
	if run.ID != 0 {
		fields = append(fields, audit.RunID(run.ID))
	}
	if reason != "" {
		fields = append(fields, audit.Reason(reason))
	}
	answer := c.refusedAction(err)
	audit.Log(c.audit, action, actionOutcome(answer), append(fields, zap.String("operation", c.route.operation))...)
	if answer == nil && c.o.Fleet.Wake != nil {
		c.o.Fleet.Wake()
	}
	return answer
}

func actionOutcome(err error) audit.Outcome {
	p, ok := errors.AsType[*problem](err)
	switch {
	case err == nil:
		return audit.Success
	case ok && p.Status == http.StatusServiceUnavailable:
		return audit.Unknown
	default:
		return audit.Failure
	}
}

// refusedAction is the answer to an action that was not done; nil stays nil.
func (c *call) refusedAction(err error) error {
	conflict := func(code, detail string, run int64) error {
		return &problem{Status: http.StatusConflict, Code: code, Detail: detail, RunID: run}
	}
	if busy, ok := errors.AsType[*scheduler.BusyError](err); ok {
		return conflict("overlap", fmt.Sprintf("run %d of the job has not ended (it is %s), and the job's overlap is skip",
			busy.Run.ID, busy.Run.State), busy.Run.ID)
	}
	if s, ok := errors.AsType[*scheduler.SupersededError](err); ok {
		return conflict("superseded", fmt.Sprintf("run %d is a later attempt at the same occurrence", s.RunID), s.RunID)
	}
	if many, ok := errors.AsType[*scheduler.TooManyError](err); ok {
		return &problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: "the span has too many instants", Errors: []fieldError{{
			"until", "range", strings.TrimPrefix(many.Error(), "scheduler: ") + "; choose a shorter span",
		}}}
	}
	for is, p := range map[error]problem{
		scheduler.ErrDisabled:   {Code: "disabled", Detail: "the job is disabled, and no replica would take the run; enabled: true enables it"},
		scheduler.ErrFinished:   {Code: "finished", Detail: "the run has ended; there is nothing to cancel"},
		scheduler.ErrUnfinished: {Code: "unfinished", Detail: "the run has not ended; cancel it first, or wait"},
		scheduler.ErrSucceeded:  {Code: "succeeded", Detail: "the run has succeeded; force does it again"},
		scheduler.ErrNoSchedule: {Code: "no_schedule", Detail: "the job has no schedule whose instants could be filled"},
	} {
		if errors.Is(err, is) {
			return conflict(p.Code, p.Detail, 0)
		}
	}
	if bad, ok := errors.AsType[*jobs.ParamsError](err); ok {
		return paramsProblem(bad)
	}
	return c.runFailed(err)
}

// paramsProblem says what is wrong with each parameter.
func paramsProblem(bad *jobs.ParamsError) *problem {
	p := &problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: "the job does not take these parameters"}
	for _, f := range bad.Faults {
		p.Errors = append(p.Errors, fieldError{f.Field, f.Code, f.Message})
	}
	return p
}

// optional is a string that may be missing; blank is missing.
func (f *fields) optional(name string, most int) string {
	v, ok := f.value(field{name, false, `"`, "a string"})
	if !ok {
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, v)
	text := strings.TrimSpace(string(s))
	switch {
	case err != nil || strings.Contains(text, "\x00"):
		f.add(name, "invalid", "has a NUL, or is no text")
	case len(text) > most:
		f.add(name, "invalid", "has %d bytes; at most %d are allowed", len(text), most)
	}
	return text
}

// params is an object of strings; nil when there is none.
func (f *fields) params() map[string]string {
	v, ok := f.value(field{"params", false, "{", "an object"})
	if !ok {
		return nil
	}
	params, err := textMembers(v)
	if err != nil {
		f.add("params", "type", "must be an object of strings, also for numbers and true or false")
	}
	return params
}
