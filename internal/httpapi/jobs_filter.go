package httpapi

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// jobFilter is which jobs a page is to have.
type jobFilter struct {
	filter   filter.Filter
	stateful bool // only the database can tell which jobs it selects
	tag      string
	behind   func(name string) bool // the place of the page
	limit    int
}

func (f *fields) jobFilter(given url.Values) jobFilter {
	want := jobFilter{limit: defaultJobs, tag: given.Get("tag"), behind: func(string) bool { return true }}
	var err error
	if want.filter, err = filter.ParseJobs(given.Get("filter")); err != nil {
		f.add("filter", "invalid", "%s", err)
	}
	want.stateful = wire.JobNeedsState(want.filter)
	if given.Has("limit") {
		want.limit = int(f.number("limit", given.Get("limit"), 1, maxJobs))
	}
	if given.Has("cursor") {
		after := f.jobCursor(given.Get("cursor"))
		want.behind = func(name string) bool { return name > after }
	}
	if given.Has("tag") && strings.TrimSpace(want.tag) == "" {
		f.add("tag", "blank", "is blank")
	}
	return want
}

// jobsOf are all jobs from the page's place on, by name; with their state when the filter needs it. What needs no database is
// looked at first, so that it is asked about few jobs.
func (c *call) jobsOf(ctx context.Context, l *jobs.Ledger, want *jobFilter) ([]wire.Job, error) {
	list, err := c.jobsTagged(ctx, l, want.tag)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(j wire.Job) bool { return !want.behind(j.Name) || !wire.JobMay(want.filter, &j) })
	if !want.stateful || len(list) == 0 {
		return list, nil
	}
	if err := c.addStates(ctx, l, list); err != nil {
		return nil, err
	}
	var states map[string][]jobs.State
	if want.filter.Has(filter.KeyState) {
		if states, err = l.UnfinishedStates(ctx); err != nil {
			return nil, fmt.Errorf("reading the states of jobs: %w", err)
		}
	}
	return slices.DeleteFunc(list, func(j wire.Job) bool { return !wire.JobIs(want.filter, &j, states[j.Name]) }), nil
}
