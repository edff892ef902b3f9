package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

// cancelRun answers with the run as it is then: ended, or still running and asked to end.
func cancelRun(c *call) error {
	r, f, err := c.runRequest("reason")
	if err != nil {
		return err
	}
	if err := f.problem(); err != nil {
		return err
	}
	run := jobs.Run{ID: r.ID}
	err = c.act(audit.RunCancel, &run, r.Reason, func(ctx context.Context, a *scheduler.Actions) error {
		got, err := a.Cancel(ctx, r)
		if err == nil {
			run = got
		}
		return err
	})
	return c.answerRun(http.StatusOK, &run, err)
}

// retryRun answers with the attempt that follows, or the one that was released.
func retryRun(c *call) error {
	r, f, err := c.runRequest("reason", "force")
	if err != nil {
		return err
	}
	force := f.boolean("force")
	if err := f.problem(); err != nil {
		return err
	}
	var was jobs.Run
	err = c.runs(func(ctx context.Context, l *jobs.Ledger) (err error) {
		was, err = l.Get(ctx, r.ID)
		return err
	})
	if err != nil {
		return err
	}
	request := scheduler.RetryRequest{RunRequest: r, Force: force}
	for _, j := range c.knownJobs() {
		if j.Name == was.Job {
			request.Job = j
		}
	}
	run := jobs.Run{ID: r.ID, Job: was.Job}
	err = c.act(audit.RunRetry, &run, r.Reason, func(ctx context.Context, a *scheduler.Actions) error {
		got, err := a.Retry(ctx, request)
		if err == nil {
			run = got
		}
		return err
	})
	return c.answerRun(http.StatusOK, &run, err)
}

func (c *call) answerRun(status int, run *jobs.Run, err error) error {
	if err != nil {
		return err
	}
	writeJSON(c.w, "application/json", status, wire.RunOf(run))
	return nil
}

// runRequest reads what all actions on a run have; the caller reads the rest of the fields and asks for their problem.
func (c *call) runRequest(known ...string) (r scheduler.RunRequest, f *fields, err error) {
	if err := c.noQuery(); err != nil {
		return r, nil, err
	}
	given, err := c.body(known...)
	if err != nil {
		return r, nil, err
	}
	f = &fields{given: given}
	r.ID, r.By, r.Reason = f.number("id", c.r.PathValue("id"), 1, 0), c.actor(), f.optional("reason", locking.MaxReasonBytes)
	return r, f, nil
}

// textMembers reads an object whose values are all strings.
func textMembers(v jsontext.Value) (map[string]string, error) {
	var raw map[string]*string
	if err := json.Unmarshal(v, &raw); err != nil {
		return nil, err //nolint:wrapcheck // the caller says it in its own words
	}
	out := make(map[string]string, len(raw))
	for name, text := range raw {
		if text == nil {
			return nil, errNullMember
		}
		out[name] = *text
	}
	return out, nil
}
