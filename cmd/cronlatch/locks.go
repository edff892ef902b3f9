package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/locking"
)

func (a *app) locksCommand() *cobra.Command {
	return groupCommand("locks", "Look at the locks, and release them", "  $ cronlatch locks list\n  $ cronlatch locks show deploy",
		a.locksListCommand(), a.locksShowCommand(), a.locksReleaseCommand())
}

func (a *app) locksListCommand() *cobra.Command {
	var format output.Format
	var server string
	filter := locking.ListFilter{State: locking.StateHeld}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List locks: who holds what, since when and until when",
		Example: "  $ cronlatch locks list\n  $ cronlatch locks list --prefix report: -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 1 || filter.Limit > maxList {
				return usage("--limit must be between 1 and %d", maxList)
			}
			return a.withLocks(cmd.Context(), server, func(ctx context.Context, b lockBackend) error {
				return a.listLocks(ctx, b.store, filter, format)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Prefix, "prefix", "", "only resources that begin with it")
	flags.StringVar(&filter.Owner, "owner", "", "only locks of this owner")
	flags.Var(choice[locking.State]{&filter.State, []locking.State{locking.StateHeld, locking.StateExpired}}, "state", "held, or left behind by an owner that is gone")
	flags.IntVar(&filter.Limit, "limit", 1000, "how many at most")
	addServer(cmd, &server)
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

func (a *app) listLocks(ctx context.Context, store locking.Store, filter locking.ListFilter, format output.Format) error {
	views, err := allLocks(ctx, store, filter)
	if err != nil {
		return err
	}
	if len(views) == 0 {
		a.say("no lock is %s", filter.State)
	}
	if len(views) == filter.Limit {
		a.say("the first %d; --limit or --prefix shows others", filter.Limit)
	}
	return output.Write(a.answer(format), output.List[lockView]{Items: views, Columns: lockColumns(), Name: func(v lockView) string { return v.Resource }})
}

// lockPage is the largest page that the store gives.
const lockPage = 1000

// allLocks pages through the store up to the filter's limit.
func allLocks(ctx context.Context, store locking.Store, filter locking.ListFilter) ([]lockView, error) {
	views, limit := []lockView{}, filter.Limit
	for len(views) < limit {
		filter.Limit = min(limit-len(views), lockPage)
		page, err := store.List(ctx, filter)
		if err != nil {
			return nil, err
		}
		for i := range page {
			views = append(views, viewLock(&page[i]))
		}
		if len(page) < filter.Limit {
			break
		}
		filter.After = page[len(page)-1].Resource
	}
	return views, nil
}

// lockView is a lock as the API shows it. Count from remaining_ms, never from expires_at and a clock of your own.
type lockView struct {
	Resource     string          `json:"resource"`
	Owner        string          `json:"owner"`
	FencingToken int64           `json:"fencing_token"`
	AcquiredAt   time.Time       `json:"acquired_at"`
	ExpiresAt    time.Time       `json:"expires_at"`
	RemainingMS  int64           `json:"remaining_ms"`
	Metadata     json.RawMessage `json:"metadata"`

	since, remaining time.Duration
}

func viewLock(r *locking.Record) lockView {
	v := lockView{
		Resource: r.Resource, Owner: r.Owner, FencingToken: r.FencingToken, AcquiredAt: r.AcquiredAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(),
		RemainingMS: r.Remaining().Milliseconds(), Metadata: r.Metadata, since: r.Now.Sub(r.AcquiredAt), remaining: r.Remaining(),
	}
	if len(v.Metadata) == 0 {
		v.Metadata = json.RawMessage("{}")
	}
	return v
}

func lockColumns() []output.Column[lockView] {
	return []output.Column[lockView]{
		{Title: "RESOURCE", Cell: func(v lockView) string { return v.Resource }},
		{Title: "TOKEN", Cell: func(v lockView) string { return strconv.FormatInt(v.FencingToken, 10) }, Right: true},
		{Title: "OWNER", Cell: func(v lockView) string { return v.Owner }},
		{Title: "SINCE", Cell: func(v lockView) string { return stamp(v.AcquiredAt) }},
		{Title: "HELD", Cell: func(v lockView) string { return span(v.since) }, Right: true},
		{Title: "EXPIRES IN", Cell: func(v lockView) string { return span(v.remaining) }, Right: true},
		{Title: "WHO", Cell: func(v lockView) string { return string(v.Metadata) }},
	}
}
