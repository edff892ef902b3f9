package jobs

import (
	"slices"
	"strings"
	"time"
)

// RunFilter selects runs; the zero value selects the newest 50. All of its conditions must be true.
type RunFilter struct {
	Job     string
	State   State
	Outcome Outcome

	Where []Condition
	Words []WordMatch // about the job's name

	Since, Until       time.Time     // runs scheduled at or after, at or before; zero is all
	SinceAgo, UntilAgo time.Duration // the same, back from the database's now; 0 is all

	After RunCursor // runs behind this one in the order of the list; the zero value is from the start
	Limit int       // 0 is 50; at most 10,000
}

// RunCursor is a place in the list of runs. Runs that are inserted later do not move it.
type RunCursor struct {
	ScheduledAt time.Time
	ID          int64
}

// CursorOf is the place of a run.
func CursorOf(r *Run) RunCursor { return RunCursor{r.ScheduledAt, r.ID} }

// RunColumn is what a Condition is about.
type RunColumn string

// The columns. Numbers are compared as decimal texts, and a run without an outcome has the outcome "".
const (
	ColumnJob      RunColumn = "job"
	ColumnState    RunColumn = "state"
	ColumnOutcome  RunColumn = "outcome"
	ColumnReason   RunColumn = "reason"
	ColumnTrigger  RunColumn = "trigger"
	ColumnReplica  RunColumn = "replica"
	ColumnResource RunColumn = "resource"
	ColumnID       RunColumn = "id"
	ColumnAttempt  RunColumn = "attempt"
)

// Condition is a Match on a column.
type Condition struct {
	Column RunColumn
	Match  Match
}

// Match says which texts are meant: those that are equal to one of Exact or begin with one of Prefix; with Not all others.
type Match struct {
	Not    bool
	Exact  []string
	Prefix []string
}

// WordMatch is about names that hold Text, byte by byte; with Not about all others.
type WordMatch struct {
	Not  bool
	Text string
}

// conditions are all conditions on columns, also those that have fields of their own.
func (f *RunFilter) conditions() []Condition {
	all := slices.Clone(f.Where)
	for column, text := range map[RunColumn]string{ColumnJob: f.Job, ColumnState: string(f.State), ColumnOutcome: string(f.Outcome)} {
		if text != "" {
			all = append(all, Condition{column, Match{Exact: []string{text}}})
		}
	}
	return all
}

// columnFilter is what the statement of a list compares one column with; a nil In is no condition.
type columnFilter struct {
	In, Prefix       []string
	Not, NotPrefix   []string
	wanted, unwanted bool
}

// merge makes one condition of all those on a column: what is wanted must be in all of them, what is not wanted in none.
func (c *columnFilter) merge(m Match) {
	switch {
	case m.Not:
		c.Not, c.NotPrefix, c.unwanted = append(c.Not, m.Exact...), append(c.NotPrefix, m.Prefix...), true
	case !c.wanted:
		c.In, c.Prefix, c.wanted = slices.Clone(m.Exact), slices.Clone(m.Prefix), true
	default:
		c.intersect(m)
	}
}

func (c *columnFilter) intersect(m Match) {
	var in, prefix []string
	for _, text := range c.In {
		if m.covers(text) {
			in = append(in, text)
		}
	}
	was := Match{Exact: c.In, Prefix: c.Prefix}
	for _, text := range m.Exact {
		if was.covers(text) {
			in = append(in, text)
		}
	}
	for _, a := range c.Prefix {
		for _, b := range m.Prefix {
			if strings.HasPrefix(a, b) {
				prefix = append(prefix, a)
			} else if strings.HasPrefix(b, a) {
				prefix = append(prefix, b)
			}
		}
	}
	c.In, c.Prefix = in, prefix
}

// covers reports whether a text is meant, Not aside.
func (m *Match) covers(text string) bool {
	return slices.Contains(m.Exact, text) || slices.ContainsFunc(m.Prefix, func(p string) bool { return strings.HasPrefix(text, p) })
}

// document is the filter as the statement takes it, without its bounds in time. job is the only job that is meant, when it
// is one by its name: a statement that knows it reads the index of that job.
func (f *RunFilter) document() (doc map[string]any, job string) {
	columns := map[RunColumn]*columnFilter{}
	for _, c := range f.conditions() {
		if columns[c.Column] == nil {
			columns[c.Column] = &columnFilter{}
		}
		columns[c.Column].merge(c.Match)
	}
	doc = map[string]any{}
	for column, c := range columns {
		if c.wanted {
			doc[string(column)+"_in"], doc[string(column)+"_prefix"] = orEmpty(c.In), orEmpty(c.Prefix)
		}
		if c.unwanted {
			doc[string(column)+"_not"], doc[string(column)+"_not_prefix"] = orEmpty(c.Not), orEmpty(c.NotPrefix)
		}
	}
	if c := columns[ColumnJob]; c != nil && len(c.In) == 1 && len(c.Prefix) == 0 {
		job = c.In[0]
	}
	var words, notWords []string
	for _, w := range f.Words {
		if w.Not {
			notWords = append(notWords, w.Text)
		} else {
			words = append(words, w.Text)
		}
	}
	if f.Words != nil {
		doc["words"], doc["not_words"] = orEmpty(words), orEmpty(notWords)
	}
	return doc, job
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
