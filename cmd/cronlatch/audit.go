package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

func (a *app) auditCommand() *cobra.Command {
	return groupCommand("audit", "Read what people did, and what was exceptional", "  $ cronlatch audit list --since 1d",
		a.auditListCommand(), a.auditTailCommand())
}

// auditFlags say which rows of the audit are meant.
type auditFlags struct {
	terms                       string
	action, actor, job, replica string
	run                         int64
	since                       time.Time
	server                      string
}

func (f *auditFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.terms, "filter", "", "which rows, such as \"action:job.* -actor:t3\"; the flags below are terms, too")
	flags.StringVar(&f.job, "job", "", "only about this job")
	flags.Int64Var(&f.run, "run", 0, "only about this run")
	flags.StringVar(&f.action, "action", "", "only this action: job.pause, or job.* for all that begin like it")
	flags.StringVar(&f.actor, "actor", "", "only what this actor did: a token's id, user@host, a replica")
	flags.StringVar(&f.replica, "replica", "", "only about this replica")
	addServer(cmd, &f.server)
}

// check refuses a filter before anybody is asked.
func (f *auditFlags) check() error {
	if _, err := filter.ParseAudit(f.terms); err != nil {
		return usage("--filter: %w", err)
	}
	return nil
}

func (f *auditFlags) query() url.Values {
	query := url.Values{}
	for name, text := range map[string]string{"filter": f.terms, "action": f.action, "actor": f.actor, "job": f.job, "replica": f.replica} {
		if text != "" {
			query.Set(name, text)
		}
	}
	if f.run != 0 {
		query.Set("run_id", strconv.FormatInt(f.run, 10))
	}
	if !f.since.IsZero() {
		query.Set("since", f.since.UTC().Format(time.RFC3339Nano))
	}
	return query
}

func (a *app) auditListCommand() *cobra.Command {
	var f auditFlags
	var format output.Format
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List the rows of the audit, the newest first",
		Example: "  $ cronlatch audit list --job backup:db --since 7d\n  $ cronlatch audit list --action job.* -o ndjson\n" +
			"  $ cronlatch audit list --filter \"action:run.cancel,run.retry -actor:root since:1d\"",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if limit < 1 || limit > maxList {
				return usage("--limit must be between 1 and %d", maxList)
			}
			return a.withAPI(cmd.Context(), f.server, func(ctx context.Context, c *api) error {
				list, err := c.auditRows(ctx, f.query(), limit)
				if err != nil {
					return err
				}
				return a.listAudit(list, limit, format)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().Var(age{&f.since, a.Now}, "since", "only rows within this time (2h, 3d), or since an instant")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most")
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

// auditRows reads page by page, the newest first.
func (c *api) auditRows(ctx context.Context, query url.Values, limit int) (list []wire.AuditEntry, err error) {
	for len(list) < limit {
		query.Set("limit", strconv.Itoa(min(limit-len(list), maxPage)))
		var page wire.AuditPage
		if err := c.get(ctx, "/audit", query, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Entries...)
		if page.NextCursor == "" {
			break
		}
		query.Set("cursor", page.NextCursor)
	}
	return list, nil
}

func (a *app) listAudit(list []wire.AuditEntry, limit int, format output.Format) error {
	if len(list) == 0 {
		a.say("no such rows in the audit")
	}
	if len(list) == limit {
		a.say("the newest %d; --limit shows more", limit)
	}
	type entry = wire.AuditEntry
	return output.Write(a.answer(format), output.List[entry]{
		Items: list, Name: func(e entry) string { return strconv.FormatInt(e.ID, 10) },
		Columns: []output.Column[entry]{
			{Title: "AT", Cell: func(e entry) string { return stamp(e.At) }},
			{Title: "ACTION", Cell: func(e entry) string { return e.Action }, Tone: auditTone},
			{Title: "ACTOR", Cell: func(e entry) string { return e.ActorID }},
			{Title: "JOB", Cell: func(e entry) string { return orNone(e.Job) }},
			{Title: "RUN", Cell: auditRun, Right: true},
			{Title: "RESOURCE", Cell: func(e entry) string { return orNone(e.Resource) }},
			{Title: "REPLICA", Cell: func(e entry) string { return orNone(e.Replica) }},
			{Title: "REASON", Cell: func(e entry) string { return orNone(e.Reason) }},
		},
	})
}

func auditTone(e wire.AuditEntry) output.Tone {
	if e.Outcome == "success" {
		return output.Plain
	}
	return output.Bad
}

func auditRun(e wire.AuditEntry) string {
	if e.RunID == nil {
		return ""
	}
	return strconv.FormatInt(*e.RunID, 10)
}

// auditSentence is a row on one line: what is not set is left out.
func auditSentence(e *wire.AuditEntry) string {
	parts := []string{stamp(e.At), e.Action}
	if e.Outcome != "success" {
		parts = append(parts, "("+e.Outcome+")")
	}
	parts = append(parts, "by "+e.ActorID)
	for _, fact := range [][2]string{
		{"job", orNone(e.Job)}, {"run", auditRun(*e)}, {"resource", orNone(e.Resource)}, {"replica", orNone(e.Replica)}, {"reason", orNone(e.Reason)},
	} {
		if fact[1] != "" {
			parts = append(parts, fmt.Sprintf("%s=%s", fact[0], word(fact[1])))
		}
	}
	return strings.Join(parts, " ")
}
