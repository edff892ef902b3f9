package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// How many jobs a page has, and how many instants are told at once.
const (
	defaultJobs     = 100
	maxJobs         = 1000
	defaultInstants = 10
	maxInstants     = 1000
)

// jobRoutes are about the known jobs. The two without a name in the path win over a job that is called like them: its caller
// escapes a letter of the name (%70ause).
func jobRoutes() []route {
	return slices.Concat([]route{
		{http.MethodGet, "/jobs", accessRead, "listJobs", listJobs},
		{http.MethodGet, "/jobs/{job}", accessRead, "getJob", getJob},
		{http.MethodGet, "/jobs/{job}/next", accessRead, "listInstants", listInstants},
	}, pauseRoutes())
}

// now is the host's clock, which only what is shown follows.
func (c *call) now() time.Time {
	if c.o.Fleet.Now == nil {
		return time.Now()
	}
	return c.o.Fleet.Now()
}

// listJobs answers a page, by name. Without a tag it has the jobs of other replicas as well, as far as the ledger tells.
func listJobs(c *call) error {
	given, err := c.query("filter", "tag", "limit", "cursor")
	if err != nil {
		return err
	}
	var f fields
	want := f.jobFilter(given)
	if err := f.problem(); err != nil {
		return err
	}
	var page wire.JobPage
	err = c.runs(func(ctx context.Context, l *jobs.Ledger) error {
		list, err := c.jobsOf(ctx, l, &want)
		if err != nil {
			return err
		}
		if len(list) > want.limit {
			list = list[:want.limit]
			page.NextCursor = cursorOf(list[want.limit-1].Name)
		}
		page.Jobs = list
		if want.stateful {
			return nil // the filter has needed it
		}
		return c.addStates(ctx, l, list)
	})
	if err != nil {
		return err
	}
	writeJSON(c.w, "application/json", http.StatusOK, page)
	return nil
}

func (f *fields) jobCursor(text string) string {
	name, err := cursorText().DecodeString(text)
	if err != nil || len(name) == 0 {
		f.add("cursor", "invalid", "is not one that a page of this list gave")
	}
	return string(name)
}

// jobsTagged are the jobs with a tag, or with "" all, by name and without their state.
func (c *call) jobsTagged(ctx context.Context, l *jobs.Ledger, tag string) ([]wire.Job, error) {
	list, here := []wire.Job{}, map[string]bool{}
	for _, j := range c.knownJobs() {
		here[j.Name] = true
		if tag == "" || slices.Contains(j.Tags, tag) {
			list = append(list, wire.JobOf(j, c.now()))
		}
	}
	if tag == "" {
		names, err := l.Names(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the jobs of other replicas: %w", err)
		}
		for _, name := range names {
			if !here[name] {
				list = append(list, wire.JobElsewhere(name))
			}
		}
	}
	slices.SortFunc(list, func(a, b wire.Job) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// addStates adds to each job what the database says of it.
func (c *call) addStates(ctx context.Context, l *jobs.Ledger, list []wire.Job) error {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	states, err := l.States(ctx, names)
	if err != nil {
		return fmt.Errorf("reading the state of jobs: %w", err)
	}
	pauses, err := scheduler.OpenPauses(c.o.Fleet.DB)
	if err != nil {
		return fmt.Errorf("reading the pauses: %w", err)
	}
	active, err := pauses.Active(ctx)
	if err != nil {
		return fmt.Errorf("reading the pauses: %w", err)
	}
	for i := range list {
		list[i].State = wire.JobStateOf(states[list[i].Name], pauseOn(active, list[i].Name))
	}
	return nil
}

// pauseOn is the pause that holds a job back: its own before that of all; nil is none.
func pauseOn(active []scheduler.Pause, job string) (found *wire.Pause) {
	for i := range active {
		if active[i].Job == job || active[i].Job == "" && found == nil {
			found = new(wire.PauseOf(&active[i]))
		}
	}
	return found
}

func getJob(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	name := c.segment("job")
	var list []wire.Job
	var names []string
	err := c.runs(func(ctx context.Context, l *jobs.Ledger) error {
		all, err := c.jobsTagged(ctx, l, "")
		if err != nil {
			return err
		}
		for i := range all {
			names = append(names, all[i].Name)
			if all[i].Name == name {
				list = all[i : i+1]
			}
		}
		return c.addStates(ctx, l, list)
	})
	if err != nil {
		return err
	}
	if list == nil {
		return noJob(name, names)
	}
	writeJSON(c.w, "application/json", http.StatusOK, list[0])
	return nil
}

// noJob is the answer about a job that nobody knows.
func noJob(name string, known []string) *problem {
	return &problem{
		Status: http.StatusNotFound, Code: "not_found",
		Detail: fmt.Sprintf("no replica has ever planned a job %q%s", shortened(name), suggestion(shortened(name), known)),
	}
}

// shortened is as much of a name as an answer repeats.
func shortened(name string) string {
	if len(name) > shownBytes {
		return strings.ToValidUTF8(name[:shownBytes], "") + "..."
	}
	return name
}

// listInstants needs no database: the schedule is enough.
func listInstants(c *call) error {
	given, err := c.query("count")
	if err != nil {
		return err
	}
	var f fields
	count := defaultInstants
	if given.Has("count") {
		count = int(f.number("count", given.Get("count"), 1, maxInstants))
	}
	if err := f.problem(); err != nil {
		return err
	}
	job, err := c.knownJob()
	if err != nil {
		return err
	}
	writeJSON(c.w, "application/json", http.StatusOK, wire.InstantsOf(job, c.now(), count))
	return nil
}
