package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

// AuditFilter selects rows; the zero value selects the newest 50. All of its conditions must be true.
type AuditFilter struct {
	Where []AuditCondition
	Words []jobs.WordMatch // about the job's name

	Since, Until       time.Time     // both included; zero is all
	SinceAgo, UntilAgo time.Duration // the same, back from the database's now; 0 is all
	After              AuditCursor   // rows behind this one in the order of the list
	Limit              int           // 0 is 50; at most 1,001
}

// AuditColumn is what an AuditCondition is about.
type AuditColumn string

// The columns. Numbers are compared as decimal texts, and a row about no run has the run "".
const (
	AuditByAction   AuditColumn = "action"
	AuditByOutcome  AuditColumn = "outcome"
	AuditByActor    AuditColumn = "actor" // its id
	AuditByJob      AuditColumn = "job"
	AuditByRun      AuditColumn = "run"
	AuditByResource AuditColumn = "resource"
	AuditByReplica  AuditColumn = "replica"
)

// AuditCondition is a match on a column.
type AuditCondition struct {
	Column AuditColumn
	Match  jobs.Match
}

// span is the arguments that every list has: the bounds in time, the cursor and the limit.
func (l *AuditLog) span(f *AuditFilter, now time.Time) []any {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultAuditLimit
	}
	from, end := time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	at, id := end, int64(math.MaxInt64)
	if !f.After.At.IsZero() {
		at, id = f.After.At, f.After.ID
	}
	if from = latest(from, f.Since); f.SinceAgo != 0 {
		from = latest(from, now.Add(-f.SinceAgo))
	}
	ends := []time.Time{at}
	if !f.Until.IsZero() {
		ends = append(ends, f.Until)
	}
	if f.UntilAgo != 0 {
		ends = append(ends, now.Add(-f.UntilAgo))
	}
	to := slices.MinFunc(ends, time.Time.Compare)
	return []any{dbtime.Arg(l.d, from), dbtime.Arg(l.d, to), dbtime.Arg(l.d, at), id, min(limit, maxAuditLimit)}
}

// auditColumn is the SQL of a column; the texts of a filter are always arguments.
func auditColumn(c AuditColumn) (string, error) {
	switch c {
	case AuditByAction, AuditByOutcome, AuditByJob, AuditByResource, AuditByReplica:
		return string(c), nil
	case AuditByActor:
		return "actor_id", nil
	case AuditByRun:
		return "coalesce(CAST(run_id AS text), '')", nil
	default:
		return "", fmt.Errorf("scheduler: the audit has no column %q", c)
	}
}

// where is the SQL of all conditions, with their arguments behind args. Lists are JSON arrays: as many terms as a filter can
// have make no expression that is too deep for a database.
func (l *AuditLog) where(f *AuditFilter, args []any) (string, []any, error) {
	var b strings.Builder
	list := func(texts []string) string {
		args = append(args, encode(append([]string{}, texts...)))
		return fmt.Sprintf(l.q.texts, "?"+strconv.Itoa(len(args)-1))
	}
	for i := range f.Where {
		column, err := auditColumn(f.Where[i].Column)
		if err != nil {
			return "", nil, err
		}
		not := ""
		if f.Where[i].Match.Not {
			not = "NOT "
		}
		m := &f.Where[i].Match
		fmt.Fprintf(&b, "\n\tAND %s(%s IN (SELECT t.value FROM %s)\n\t\tOR EXISTS (SELECT 1 FROM %s WHERE substr(%s, 1, length(t.value)) = t.value))",
			not, column, list(m.Exact), list(m.Prefix), column)
	}
	var with, without []string
	for _, w := range f.Words {
		if w.Not {
			without = append(without, w.Text)
		} else {
			with = append(with, w.Text)
		}
	}
	if f.Words != nil {
		fmt.Fprintf(&b, "\n\tAND NOT EXISTS (SELECT 1 FROM %s WHERE %s(job, t.value) = 0)", list(with), l.q.place)
		fmt.Fprintf(&b, "\n\tAND NOT EXISTS (SELECT 1 FROM %s WHERE %s(job, t.value) > 0)", list(without), l.q.place)
	}
	return b.String(), args, nil
}
