package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// How many rows a page of the audit has.
const (
	defaultAudit = 50
	maxAudit     = 1000
)

// noteTimeout is how long a caller waits for a row about what was done without the database.
const noteTimeout = time.Second

// auditRoutes are about the audit rows.
func auditRoutes() []route {
	return []route{{http.MethodGet, "/audit", accessRead, "listAudit", listAudit}}
}

// listAudit answers a page, the newest first. Rows that are added between two pages move no other one.
func listAudit(c *call) error {
	given, err := c.query("filter", "action", "actor", "job", "run_id", "replica", "since", "until", "limit", "cursor")
	if err != nil {
		return err
	}
	var f fields
	want := f.auditFilter(given)
	if err := f.problem(); err != nil {
		return err
	}
	limit := want.Limit
	want.Limit++
	var entries []scheduler.AuditEntry
	var now time.Time
	err = c.runs(func(ctx context.Context, _ *jobs.Ledger) error {
		log, err := scheduler.OpenAuditLog(c.o.Fleet.DB)
		if err != nil {
			return fmt.Errorf("reading the audit: %w", err)
		}
		entries, now, err = log.List(ctx, want)
		return err
	})
	if err != nil {
		return err
	}
	page := wire.AuditPage{Entries: []wire.AuditEntry{}, Now: now}
	if len(entries) > limit {
		entries = entries[:limit]
		last := entries[limit-1]
		page.NextCursor = runCursorOf(jobs.RunCursor{ScheduledAt: last.At, ID: last.ID})
	}
	for i := range entries {
		page.Entries = append(page.Entries, wire.AuditEntryOf(&entries[i]))
	}
	writeJSON(c.w, "application/json", http.StatusOK, page)
	return nil
}

// auditFilter is the filter's text with the other parameters as further terms.
func (f *fields) auditFilter(given url.Values) scheduler.AuditFilter {
	parsed, err := filter.ParseAudit(given.Get("filter"))
	if err != nil {
		f.add("filter", "invalid", "%s", err)
	}
	want := parsed.CompileAudit()
	want.Limit = defaultAudit
	for name, values := range given {
		switch {
		case name == "filter": // has said what is wrong with it; an empty one is all
		case values[0] == "":
			f.add(name, "blank", "is blank")
		case !plainText(values[0]):
			f.add(name, "invalid", "is too long, not valid UTF-8, or has a NUL")
		}
	}
	want.Where = append(want.Where, f.auditTerms(given)...)
	if given.Has("limit") {
		want.Limit = int(f.number("limit", given.Get("limit"), 1, maxAudit))
	}
	f.auditSpan(given, &want)
	if given.Has("cursor") {
		at := f.runCursor(given.Get("cursor"))
		want.After = scheduler.AuditCursor{At: at.ScheduledAt, ID: at.ID}
	}
	return want
}

// auditSpan narrows the span of the filter to that of the parameters.
func (f *fields) auditSpan(given url.Values, want *scheduler.AuditFilter) {
	if given.Has("since") {
		if at := f.moment("since", given.Get("since")); at.After(want.Since) {
			want.Since = at
		}
	}
	if given.Has("until") {
		if at := f.moment("until", given.Get("until")); want.Until.IsZero() || at.Before(want.Until) {
			want.Until = at
		}
	}
}

// auditTerms are the parameters that are about one column. They take any text: one that is no action selects nothing.
func (f *fields) auditTerms(given url.Values) (terms []scheduler.AuditCondition) {
	if given.Has("run_id") {
		f.number("run_id", given.Get("run_id"), 1, 0)
	}
	for _, p := range []struct {
		name   string
		column scheduler.AuditColumn
	}{
		{"action", scheduler.AuditByAction},
		{"actor", scheduler.AuditByActor},
		{"job", scheduler.AuditByJob},
		{"run_id", scheduler.AuditByRun},
		{"replica", scheduler.AuditByReplica},
	} {
		if !given.Has(p.name) {
			continue
		}
		match := jobs.Match{Exact: []string{given.Get(p.name)}}
		if begins, ok := strings.CutSuffix(given.Get(p.name), "*"); ok && p.column == scheduler.AuditByAction {
			match = jobs.Match{Prefix: []string{begins}}
		}
		terms = append(terms, scheduler.AuditCondition{Column: p.column, Match: match})
	}
	return terms
}

// moment is an instant in a query.
func (f *fields) moment(name, text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		f.add(name, "invalid", "must be a time like 2026-03-07T12:00:00Z; a plus sign in it must be escaped as %%2B")
	}
	return at
}

// note keeps what a person did and no transaction has kept yet as a row of the audit. That it could not be kept is no reason
// to answer that it was not done, nor to keep the caller waiting: the audit's line is there all the same.
func (c *call) note(e scheduler.AuditEntry) {
	if c.o.Fleet == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), noteTimeout)
	defer cancel()
	e.ActorType, e.ActorID, e.Replica = string(audit.ActorUser), c.actor(), c.o.Replica
	err := c.checked(ctx)
	if err == nil {
		var log *scheduler.AuditLog
		if log, err = scheduler.OpenAuditLog(c.o.Fleet.DB); err == nil {
			err = log.Add(ctx, &e)
		}
	}
	if err != nil {
		c.log.Warn("a row of the audit could not be written", zap.String("request.id", idOf(c.r)), zap.String("action", e.Action), zap.Error(err))
	}
}

// noteReload keeps that somebody had the configuration read again.
func (c *call) noteReload(done Reloaded, err error) {
	e := scheduler.AuditEntry{Action: string(audit.ConfigLoad), Outcome: string(audit.Success)}
	if err != nil {
		e.Action, e.Outcome, e.Reason = string(audit.ConfigReject), string(audit.Failure), "the configuration was not taken; the old one stays"
	}
	e.Detail = fmt.Appendf(nil, `{"definitions": %s, "added": %d, "removed": %d, "changed": %d}`,
		strconv.Quote(strings.ToValidUTF8(done.Hash, "")), len(done.Added), len(done.Removed), len(done.Changed))
	c.note(e)
}
