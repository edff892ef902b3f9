package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// How many runs a page has.
const (
	defaultRuns = 50
	maxRuns     = 1000
)

// runRoutes are about the ledger.
func runRoutes() []route {
	return []route{
		{http.MethodGet, "/runs", accessRead, "listRuns", listRuns},
		{http.MethodGet, "/runs/export", accessRead, "exportRuns", exportRuns},
		{http.MethodGet, "/runs/{id}", accessRead, "getRun", getRun},
		{http.MethodPost, "/runs/{id}/cancel", accessOperate, "cancelRun", cancelRun},
		{http.MethodPost, "/runs/{id}/retry", accessOperate, "retryRun", retryRun},
		{http.MethodPost, "/jobs/{job}/runs", accessOperate, "startRun", startRun},
		{http.MethodPost, "/jobs/{job}/backfill", accessOperate, "backfillJob", backfillJob},
	}
}

// listRuns answers a page, the newest scheduled instant first. The cursor is the place of its last run, so that runs that are
// inserted between two pages move no other one.
func listRuns(c *call) error {
	given, err := c.query("filter", "limit", "cursor")
	if err != nil {
		return err
	}
	var f fields
	want := c.runFilter(&f, given.Get("filter"))
	want.Limit = defaultRuns
	if given.Has("limit") {
		want.Limit = int(f.number("limit", given.Get("limit"), 1, maxRuns))
	}
	if given.Has("cursor") {
		want.After = f.runCursor(given.Get("cursor"))
	}
	if err := f.problem(); err != nil {
		return err
	}
	page, err := c.runPage(want)
	if err != nil {
		return err
	}
	writeJSON(c.w, "application/json", http.StatusOK, page)
	return nil
}

// runPage reads one run more than the page has: the last page has no cursor.
func (c *call) runPage(want jobs.RunFilter) (wire.RunPage, error) {
	limit := want.Limit
	want.Limit++
	var runs []jobs.Run
	err := c.runs(func(ctx context.Context, l *jobs.Ledger) (err error) {
		runs, err = l.List(ctx, want)
		return err
	})
	if err != nil {
		return wire.RunPage{}, err
	}
	page := wire.RunPage{Runs: []wire.Run{}}
	if len(runs) > limit {
		runs = runs[:limit]
		page.NextCursor = runCursorOf(jobs.CursorOf(&runs[limit-1]))
	}
	for i := range runs {
		page.Runs = append(page.Runs, wire.RunOf(&runs[i]))
	}
	return page, nil
}

// runFilter reads the language of package filter.
func (c *call) runFilter(f *fields, text string) jobs.RunFilter {
	parsed, err := filter.Parse(text)
	if err != nil {
		f.add("filter", "invalid", "%s", err)
		return jobs.RunFilter{}
	}
	return parsed.Compile(func(tag string) (names []string) {
		for _, j := range c.knownJobs() {
			for _, t := range j.Tags {
				if t == tag {
					names = append(names, j.Name)
				}
			}
		}
		return names
	})
}

func (c *call) knownJobs() []*jobs.Job {
	if c.o.Fleet.Jobs == nil {
		return nil
	}
	return c.o.Fleet.Jobs()
}

// runCursorOf is opaque to clients: microseconds, which is as fine as both databases are, and the id.
func runCursorOf(at jobs.RunCursor) string {
	return cursorOf(strconv.FormatInt(at.ScheduledAt.UnixMicro(), 10) + "." + strconv.FormatInt(at.ID, 10))
}

func (f *fields) runCursor(text string) jobs.RunCursor {
	decoded, err := cursorText().DecodeString(text)
	micros, id, found := strings.Cut(string(decoded), ".")
	at, aerr := strconv.ParseInt(micros, 10, 64)
	n, nerr := strconv.ParseInt(id, 10, 64)
	if err != nil || !found || aerr != nil || nerr != nil || n < 1 || at < 0 || time.UnixMicro(at).UTC().Year() > 9999 {
		f.add("cursor", "invalid", "is not one that a page of this list gave")
		return jobs.RunCursor{}
	}
	return jobs.RunCursor{ScheduledAt: time.UnixMicro(at).UTC(), ID: n}
}

func getRun(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	var f fields
	id := f.number("id", c.r.PathValue("id"), 1, 0)
	if err := f.problem(); err != nil {
		return err
	}
	var run jobs.Run
	err := c.runs(func(ctx context.Context, l *jobs.Ledger) (err error) {
		run, err = l.Get(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	writeJSON(c.w, "application/json", http.StatusOK, wire.RunOf(&run))
	return nil
}

// runs reads the ledger.
func (c *call) runs(read func(context.Context, *jobs.Ledger) error) error {
	ctx, cancel := c.reading()
	defer cancel()
	err := c.checked(ctx)
	if err == nil {
		var ledger *jobs.Ledger
		if ledger, err = jobs.OpenLedger(c.o.Fleet.DB); err == nil {
			err = read(ctx, ledger)
		}
	}
	return c.runFailed(err)
}

// runFailed turns what went wrong with a run into an answer; nil stays nil.
func (c *call) runFailed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jobs.ErrRunNotFound):
		return &problem{Status: http.StatusNotFound, Code: "not_found", Detail: "there is no such run; old ones are deleted, as history says"}
	}
	if c.r.Context().Err() == nil {
		c.log.Warn("the ledger did not answer", zap.String("request.id", idOf(c.r)), zap.String("operation", c.route.operation), zap.Error(err))
	}
	return unavailable(problem{Code: "database", Detail: "the database did not answer; what was asked for may have been done: ask again"})
}

// segment is a name in the path that may hold an escaped slash.
func (c *call) segment(wildcard string) string {
	name, err := url.PathUnescape(c.r.PathValue(wildcard))
	if err != nil {
		return c.r.PathValue(wildcard) // net/http has parsed the path; a name with a stray % is still one name
	}
	return name
}
