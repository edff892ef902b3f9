package filter

import (
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// Compile is a filter of runs as the ledger takes it. tagged gives the names of the jobs that have a tag; it is only asked for tags
// that the filter has.
func (f Filter) Compile(tagged func(tag string) []string) jobs.RunFilter {
	var out jobs.RunFilter
	for _, t := range f.Terms {
		switch t.Key {
		case "":
			out.Words = append(out.Words, jobs.WordMatch{Text: t.Values[0].Text, Not: t.Not})
		case keySince:
			t.Values[0].since(&out.SinceAgo, &out.Since)
		case keyUntil:
			t.Values[0].until(&out.UntilAgo, &out.Until)
		case keyTag:
			m := jobs.Match{Not: t.Not, Exact: []string{}}
			for _, v := range t.Values {
				m.Exact = append(m.Exact, tagged(v.Text)...)
			}
			out.Where = append(out.Where, jobs.Condition{Column: jobs.ColumnJob, Match: m})
		default:
			out.Where = append(out.Where, jobs.Condition{Column: jobs.RunColumn(t.Key), Match: t.match()})
		}
	}
	return out
}

// since moves the start of a range to the value when that is later: all terms must be true.
func (v Value) since(ago *time.Duration, at *time.Time) {
	if v.ago != 0 && (*ago == 0 || v.ago < *ago) {
		*ago = v.ago
	}
	if v.at.After(*at) {
		*at = v.at
	}
}

// until moves the end of a range to the value when that is earlier.
func (v Value) until(ago *time.Duration, at *time.Time) {
	*ago = max(*ago, v.ago)
	if !v.at.IsZero() && (at.IsZero() || v.at.Before(*at)) {
		*at = v.at
	}
}

func (t *Term) match() jobs.Match {
	m := jobs.Match{Not: t.Not}
	for _, v := range t.Values {
		if v.Prefix {
			m.Prefix = append(m.Prefix, v.Text)
		} else {
			m.Exact = append(m.Exact, v.Text)
		}
	}
	return m
}

// CompileAudit is a filter of the audit as its log takes it.
func (f Filter) CompileAudit() scheduler.AuditFilter {
	var out scheduler.AuditFilter
	for _, t := range f.Terms {
		switch t.Key {
		case "":
			out.Words = append(out.Words, jobs.WordMatch{Text: t.Values[0].Text, Not: t.Not})
		case keySince:
			t.Values[0].since(&out.SinceAgo, &out.Since)
		case keyUntil:
			t.Values[0].until(&out.UntilAgo, &out.Until)
		default:
			out.Where = append(out.Where, scheduler.AuditCondition{Column: scheduler.AuditColumn(t.Key), Match: t.match()})
		}
	}
	return out
}

// The keys of a filter of jobs that only the database can answer.
const (
	KeyPaused  = "paused"
	KeyState   = "state"
	KeyOutcome = "outcome"
	KeyReason  = "reason"
)

// StateIdle is the state of a job that has no unfinished run.
const StateIdle = "idle"

// Has reports whether the filter has a term with one of the keys.
func (f Filter) Has(keys ...string) bool {
	return slices.ContainsFunc(f.Terms, func(t Term) bool { return slices.Contains(keys, t.Key) })
}

// Match reports whether something is selected. texts gives what it has for a key, any number of texts, and for the key ""
// the name that a word must be a part of.
func (f Filter) Match(texts func(key string) []string) bool {
	for i := range f.Terms {
		t := &f.Terms[i]
		if slices.ContainsFunc(texts(t.Key), t.covers) == t.Not {
			return false
		}
	}
	return true
}

// covers reports whether a text is one of those that the term names.
func (t *Term) covers(text string) bool {
	return slices.ContainsFunc(t.Values, func(v Value) bool {
		switch {
		case t.Key == "":
			return strings.Contains(text, v.Text)
		case v.Prefix:
			return strings.HasPrefix(text, v.Text)
		default:
			return text == v.Text
		}
	})
}
