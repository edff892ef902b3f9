package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// explainRoutes are about the stories of jobs and runs.
func explainRoutes() []route {
	return []route{
		{http.MethodGet, "/jobs/{job}/explain", accessRead, "explainJob", explainJob},
		{http.MethodGet, "/runs/{id}/explain", accessRead, "explainRun", explainRun},
	}
}

func explainJob(c *call) error {
	given, err := c.query("at")
	if err != nil {
		return err
	}
	var f fields
	if given.Has("at") && given.Get("at") == "" {
		f.add("at", "blank", "is blank")
	}
	if err := f.problem(); err != nil {
		return err
	}
	return c.explain(scheduler.ExplainRequest{Job: c.segment("job"), At: given.Get("at")})
}

func explainRun(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	var f fields
	id := f.number("id", c.r.PathValue("id"), 1, 0)
	if err := f.problem(); err != nil {
		return err
	}
	return c.explain(scheduler.ExplainRequest{RunID: id})
}

func (c *call) explain(r scheduler.ExplainRequest) error {
	r.Known, r.Silence = c.knownJobs(), c.o.Fleet.TTL
	if c.o.Fleet.History != nil {
		r.History = c.o.Fleet.History()
	}
	var story *explain.Story
	var wrong, none error
	var names []string
	err := c.runs(func(ctx context.Context, l *jobs.Ledger) (err error) {
		story, err = scheduler.Explain(ctx, c.o.Fleet.DB, r)
		switch bad, isBad := errors.AsType[*scheduler.AtError](err); {
		case isBad:
			var f fields
			f.add("at", "invalid", "%s", bad)
			wrong = f.problem()
			return nil
		case errors.Is(err, scheduler.ErrNoJob):
			none = err
			names, err = l.Names(ctx)
			return err
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case wrong != nil:
		return wrong
	case none != nil:
		for _, j := range r.Known {
			names = append(names, j.Name)
		}
		return noJob(r.Job, names)
	}
	writeJSON(c.w, "application/json", http.StatusOK, wire.StoryOf(story))
	return nil
}
