package wire

import (
	"slices"
	"strconv"

	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/jobs"
)

// stateKeys are the keys of a filter of jobs that only the database can answer.
func stateKeys() []string {
	return []string{filter.KeyPaused, filter.KeyState, filter.KeyOutcome, filter.KeyReason}
}

// JobNeedsState reports whether only the database can say what a filter of jobs selects.
func JobNeedsState(f filter.Filter) bool { return f.Has(stateKeys()...) }

// JobMay reports whether the filter selects the job as far as its definition tells: it leaves out what needs the state.
func JobMay(f filter.Filter, j *Job) bool {
	f.Terms = slices.DeleteFunc(slices.Clone(f.Terms), func(t filter.Term) bool { return slices.Contains(stateKeys(), t.Key) })
	return JobIs(f, j, nil)
}

// JobIs reports whether the filter selects the job. unfinished are the states of its runs; of a job without State, nothing
// has run and nothing is paused.
func JobIs(f filter.Filter, j *Job, unfinished []jobs.State) bool {
	return f.Match(func(key string) []string {
		if texts, ok := j.definitionTexts(key); ok {
			return texts
		}
		return j.stateTexts(key, unfinished)
	})
}

// definitionTexts are what a term is compared with. What is not known of a job that is not defined here is no text at all: it
// is neither enabled nor disabled.
func (j *Job) definitionTexts(key string) (texts []string, ok bool) {
	switch key {
	case "", "job":
		return []string{j.Name}, true
	case "tag":
		return j.Tags, true
	case "defined":
		return []string{strconv.FormatBool(j.Defined)}, true
	case "enabled", "kind":
		if !j.Defined {
			return nil, true
		}
		if key == "kind" {
			return []string{j.Kind}, true
		}
		return []string{strconv.FormatBool(j.Enabled)}, true
	default:
		return nil, false
	}
}

func (j *Job) stateTexts(key string, unfinished []jobs.State) (texts []string) {
	switch key {
	case filter.KeyPaused:
		return []string{strconv.FormatBool(j.State != nil && j.State.Paused != nil)}
	case filter.KeyState:
		if len(unfinished) == 0 {
			return []string{filter.StateIdle}
		}
		for _, s := range unfinished {
			texts = append(texts, string(s))
		}
		return texts
	}
	if j.State == nil || j.State.LastRun == nil {
		return nil
	}
	text := j.State.LastRun.Outcome
	if key == filter.KeyReason {
		text = j.State.LastRun.Reason
	}
	if text == nil {
		return nil
	}
	return []string{*text}
}
