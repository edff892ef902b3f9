package main

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

func (a *app) auditTailCommand() *cobra.Command {
	var f auditFlags
	var format output.Format
	cmd := &cobra.Command{
		Use: "tail", Short: "Follow the audit: print each row when it is there, until Ctrl-C",
		Long: "tail prints the rows that are new from now on, the oldest first, and looks for them once a second. While nobody\n" +
			"answers it waits, and then goes on without a gap.",
		Example: "  $ cronlatch audit tail\n  $ cronlatch audit tail --action lock.* -o ndjson",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			ctx := cmd.Context() // it may take longer than the patience with one call
			return a.withAPI(ctx, f.server, func(_ context.Context, c *api) error {
				t := &auditTail{a: a, api: c, query: f.query(), format: format, seen: map[int64]time.Time{}}
				return t.follow(ctx)
			})
		},
	}
	f.add(cmd)
	addOutput(cmd, &format, output.Table, output.NDJSON)
	return cmd
}

const (
	tailEvery = time.Second
	// tailOverlap is longer than any transaction that writes a row lasts: the daemon's own are given up after seconds, and
	// the database ends a session that hangs.
	tailOverlap = time.Minute
)

// auditTail follows the audit. A row becomes visible when its transaction ends, and on PostgreSQL those end in any order: a
// row with a lower id, and an earlier time, may appear behind one that was printed long ago. So the tail does not go on
// behind the last id. It asks each time for everything from a minute before its last answered question on, by the database's
// clock, and leaves out the ids that it has printed. After an outage that question is as old as the outage, and nothing is missing.
type auditTail struct {
	a      *app
	api    *api
	query  url.Values
	format output.Format

	since  time.Time           // of the next question; zero before the first
	seen   map[int64]time.Time // the ids from there on, and when each row was written
	silent bool                // it was said that nobody answers
}

// follow ends with ctx, which is how it should end. Only the first question must be answered at once.
func (t *auditTail) follow(ctx context.Context) error {
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		err := t.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && t.silent:
			t.silent = false
			t.a.say("%s answers again", t.api.where)
		case err != nil && (first || !isAway(err)):
			return err
		case err != nil && !t.silent:
			t.silent = true
			t.a.say("%s does not answer; waiting", t.api.where)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// look asks once for what is new, and prints it. Nothing is printed, and nothing forgotten, unless all pages came.
func (t *auditTail) look(ctx context.Context) error {
	calls, cancel := context.WithTimeout(ctx, t.a.Patience)
	defer cancel()
	query := maps.Clone(t.query)
	query.Set("limit", strconv.Itoa(maxPage))
	if t.since.IsZero() { // one row is enough to learn the time
		query.Set("limit", "1")
	} else {
		query.Set("since", t.since.UTC().Format(time.RFC3339Nano))
	}
	var now time.Time
	var rows []wire.AuditEntry
	for {
		var page wire.AuditPage
		if err := t.api.get(calls, "/audit", query, &page); err != nil {
			return err
		}
		if now.IsZero() {
			now = page.Now
		}
		if t.since.IsZero() {
			t.since = now.Add(-tailOverlap)
			return t.begin(calls)
		}
		rows = append(rows, page.Entries...)
		if page.NextCursor == "" {
			break
		}
		query.Set("cursor", page.NextCursor)
	}
	return t.print(t.fresh(rows, now.Add(-tailOverlap)))
}

// begin remembers what is there already: it is not new.
func (t *auditTail) begin(ctx context.Context) error {
	query := maps.Clone(t.query)
	query.Set("since", t.since.UTC().Format(time.RFC3339Nano))
	rows, err := t.api.auditRows(ctx, query, maxList)
	if err != nil {
		t.since = time.Time{}
		return err
	}
	t.fresh(rows, t.since)
	return nil
}

// fresh are the rows that were not there before, the oldest first; since is where the next question begins.
func (t *auditTail) fresh(rows []wire.AuditEntry, since time.Time) (list []wire.AuditEntry) {
	for _, e := range slices.Backward(rows) {
		if _, known := t.seen[e.ID]; !known {
			t.seen[e.ID] = e.At
			list = append(list, e)
		}
	}
	t.since = since
	maps.DeleteFunc(t.seen, func(_ int64, at time.Time) bool { return at.Before(since) })
	return list
}

func (t *auditTail) print(rows []wire.AuditEntry) error {
	for i := range rows {
		if err := output.WriteValue(t.a.answer(t.format), rows[i], func() []string { return []string{auditSentence(&rows[i])} }); err != nil {
			return err
		}
	}
	return nil
}
