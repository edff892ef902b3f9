package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// A filter has no bound on its terms but its length: none of them makes a statement that a database refuses.
func TestEveryTermNarrowsTheAudit(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		l, err := OpenAuditLog(b.db)
		require.NoError(b.t, err)
		for _, e := range []AuditEntry{
			{Action: "job.pause", Outcome: "success", ActorID: "ünal", Job: "a_b%c", Resource: "r"},
			{Action: "run.lose", Outcome: "failure", ActorID: "x'; DROP TABLE audit_log; --", Job: "aXbYc", RunID: 7},
			{Action: "run.retry", Outcome: "unknown", ActorID: "únal", Job: `"\?0`, RunID: 71},
		} {
			e.ActorType = "user"
			require.NoError(b.t, l.Add(b.ctx(), &e))
		}
		not := func(f AuditFilter) AuditFilter { f.Where[0].Match.Not = true; return f }
		word := func(text string, not bool) AuditFilter {
			return AuditFilter{Words: []jobs.WordMatch{{Text: text, Not: not}}}
		}
		many := AuditFilter{}
		for range 1400 {
			many.Words = append(many.Words, jobs.WordMatch{Text: "q", Not: true})
		}
		for range 580 {
			many.Where = append(many.Where, not(auditBy(AuditByRun, "9")).Where...)
		}
		long := auditBy(AuditByJob, slices.Repeat([]string{"q", "q*"}, 700)...)
		all := "run.retry run.lose job.pause"
		for name, c := range map[string]struct {
			f    AuditFilter
			want string
		}{
			"nothing":        {AuditFilter{}, all},
			"a start":        {auditBy(AuditByAction, "run.*"), "run.retry run.lose"},
			"not a start":    {not(auditBy(AuditByAction, "run.*")), "job.pause"},
			"one of two":     {auditBy(AuditByAction, "run.retry", "job.*"), "run.retry job.pause"},
			"outcome":        {auditBy(AuditByOutcome, "failure", "unknown"), "run.retry run.lose"},
			"letters":        {auditBy(AuditByActor, "ün*"), "job.pause"},
			"no SQL":         {auditBy(AuditByActor, "x'; DROP TABLE audit_log; --"), "run.lose"},
			"no placeholder": {auditBy(AuditByJob, `"\?0`), "run.retry"},
			"no pattern":     {auditBy(AuditByJob, "a_b%c"), "job.pause"},
			"run":            {auditBy(AuditByRun, "7"), "run.lose"},
			"not run":        {not(auditBy(AuditByRun, "7")), "run.retry job.pause"},
			"resource":       {auditBy(AuditByResource, "r"), "job.pause"},
			"nothing at all": {AuditFilter{Where: []AuditCondition{{AuditByJob, jobs.Match{}}}}, ""},
			"word":           {word("b%", false), "job.pause"},
			"not word":       {word("a", true), "run.retry"},
			"both":           {AuditFilter{Where: auditBy(AuditByAction, "run.*").Where, Words: word("X", false).Words}, "run.lose"},
			"lately":         {AuditFilter{SinceAgo: time.Hour}, all},
			"later of two":   {AuditFilter{SinceAgo: time.Hour, Since: b.clock().Add(time.Minute)}, ""},
			"earlier of two": {AuditFilter{UntilAgo: time.Hour, Until: b.clock().Add(time.Minute)}, ""},
			"many":           {many, all},
			"long":           {long, ""},
		} {
			entries, _, err := l.List(b.ctx(), c.f)
			require.NoError(b.t, err, name)
			actions := make([]string, len(entries))
			for i := range entries {
				actions[i] = entries[i].Action
			}
			assert.Equal(b.t, c.want, strings.Join(actions, " "), name)
		}
		_, _, err = l.List(b.ctx(), auditBy("id) OR (1 = 1", "x"))
		require.Error(b.t, err)
	})
}

// auditBy selects the rows whose column is one of the texts; one that ends in "*" is a start.
func auditBy(column AuditColumn, texts ...string) AuditFilter {
	m := jobs.Match{}
	for _, text := range texts {
		if begins, ok := strings.CutSuffix(text, "*"); ok {
			m.Prefix = append(m.Prefix, begins)
		} else {
			m.Exact = append(m.Exact, text)
		}
	}
	return AuditFilter{Where: []AuditCondition{{column, m}}}
}
