package filter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/typo"
	"github.com/cronlatch/cronlatch/jobs"
)

const (
	keySince = "since"
	keyUntil = "until"
	keyTag   = "tag"
)

// language is what a text may say: its keys are those of one kind of thing.
type language []key

// key is what may stand in front of a colon.
type key struct {
	name   string
	words  []string // the only values that there are; nil is any text
	prefix bool     // a value may end in "*"
	number bool     // from 1 on
	moment bool     // a duration back from now, or an instant
}

// ofRuns is the language about the ledger.
func ofRuns() language {
	return language{
		{name: "job", prefix: true},
		{name: "state", words: texts(jobs.StatePending, jobs.StateRunning, jobs.StateHeld, jobs.StateFinished)},
		{name: "outcome", words: outcomes()},
		{name: "reason", words: reasons()},
		{name: "trigger", words: texts(jobs.TriggerSchedule, jobs.TriggerCatchUp, jobs.TriggerManual, jobs.TriggerRetry, jobs.TriggerRecovery,
			jobs.TriggerBackfill, jobs.TriggerAfter, jobs.TriggerOnSuccess, jobs.TriggerOnFailure, jobs.TriggerOnAbort)},
		{name: "replica", prefix: true},
		{name: "resource", prefix: true},
		{name: keyTag},
		{name: "id", number: true},
		{name: "attempt", number: true},
		{name: keySince, moment: true},
		{name: keyUntil, moment: true},
	}
}

// ofJobs is the language about definitions, and what became of them.
func ofJobs() language {
	yes := []string{"true", "false"}
	return language{
		{name: "job", prefix: true},
		{name: keyTag},
		{name: "kind", words: []string{"command", "run", "http", "sql"}},
		{name: "enabled", words: yes},
		{name: "defined", words: yes},
		{name: KeyPaused, words: yes},
		{name: KeyState, words: texts(jobs.StatePending, jobs.StateRunning, jobs.StateHeld, StateIdle)},
		{name: KeyOutcome, words: outcomes()},
		{name: KeyReason, words: reasons()},
	}
}

// ofAudit is the language about the rows of the audit.
func ofAudit() language {
	return language{
		{name: "action", words: texts(audit.Actions()...), prefix: true},
		{name: "outcome", words: texts(audit.Success, audit.Failure, audit.Unknown)},
		{name: "actor", prefix: true},
		{name: "job", prefix: true},
		{name: "run", number: true},
		{name: "resource", prefix: true},
		{name: "replica", prefix: true},
		{name: keySince, moment: true},
		{name: keyUntil, moment: true},
	}
}

func outcomes() []string {
	return texts(jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeCancelled, jobs.OutcomeSkipped,
		jobs.OutcomeMissed, jobs.OutcomeLost)
}

func reasons() []string {
	return texts(jobs.ReasonOverlap, jobs.ReasonDisabled, jobs.ReasonLockHeld, jobs.ReasonNoCapacity, jobs.ReasonNoReplica,
		jobs.ReasonCatchUp, jobs.ReasonExit, jobs.ReasonSignal, jobs.ReasonStart, jobs.ReasonTimeout, jobs.ReasonDrain,
		jobs.ReasonLeaseLost, jobs.ReasonReplicaLost, jobs.ReasonStaleStart, jobs.ReasonSupervisor, jobs.ReasonRequested,
		jobs.ReasonReplaced, jobs.ReasonOncePer, jobs.ReasonLimit, jobs.ReasonUpstream, jobs.ReasonPaused,
		jobs.ReasonNoMatchingReplica)
}

func texts[T ~string](all ...T) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = string(t)
	}
	return out
}

// names are those of all keys, or of those that may.
func (l language) names(may func(key) bool) (names []string) {
	for _, k := range l {
		if may(k) {
			names = append(names, k.name)
		}
	}
	return names
}

// key finds one by its name, else it says what there is. The word without a key is a key of no name.
func (l language) key(name string) (key, error) {
	for _, k := range l {
		if k.name == name {
			return k, nil
		}
	}
	if name == "" {
		return key{}, errors.New("there is no key in front of the colon; a word that holds a colon must be quoted")
	}
	all := l.names(func(key) bool { return true })
	return key{}, fmt.Errorf("%q is not a key%s; the keys are %s", head(name), didYouMean(name, all), strings.Join(all, ", "))
}

// check is what depends on the key.
func (t *Term) check(l language, k key) error {
	for i := range t.Values {
		v := &t.Values[i]
		switch {
		case v.Prefix && !k.prefix:
			return fmt.Errorf("%q ends in a \"*\", which only %s can; quote it if it is part of the text",
				head(v.Text)+"*", list(l.names(func(k key) bool { return k.prefix })))
		case len(k.words) == 2 && !v.among(k.words):
			return fmt.Errorf("%q is neither %s nor %s", head(v.Text), k.words[0], k.words[1])
		case k.words != nil && !v.among(k.words):
			return fmt.Errorf("%q is no %s%s; there are %s", head(v.Text), t.Key, didYouMean(v.Text, k.words), strings.Join(k.words, ", "))
		case k.number:
			if err := number(v.Text); err != nil {
				return err
			}
		}
	}
	if k.moment {
		return t.checkTime()
	}
	return nil
}

// among reports whether one of the words is meant.
func (v Value) among(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return w == v.Text || v.Prefix && strings.HasPrefix(w, v.Text) })
}

// list is names in a sentence; there are two at least.
func list(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func (t *Term) checkTime() error {
	if t.Not || len(t.Values) != 1 {
		return fmt.Errorf("%s takes one value, and no \"-\" in front of it; since and until together are a range", t.Key)
	}
	v := &t.Values[0]
	if at, err := time.Parse(time.RFC3339, v.Text); err == nil {
		v.at = at.UTC()
		return nil
	}
	d, ok := parseAgo(v.Text)
	if !ok {
		return fmt.Errorf("%q is neither a duration like 90m, 24h, 3d or 2w nor an instant like 2026-03-07T12:00:00Z", head(v.Text))
	}
	v.ago = d
	return nil
}

// maxAgo is more than any ledger goes back.
const maxAgo = 100 * 366 * 24 * time.Hour

// parseAgo reads Go's durations, and whole days and weeks in front of them.
func parseAgo(text string) (time.Duration, bool) {
	var total time.Duration
	rest := text
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		digits, after, found := strings.Cut(rest, unit.letter)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return 0, false
		}
		total, rest = total+time.Duration(n)*unit.length, after
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || strings.HasPrefix(rest, "+") || strings.HasPrefix(rest, "-") {
			return 0, false
		}
		total += d
	}
	return total, total > 0 && total <= maxAgo && text != ""
}

// didYouMean names the known word that is close enough to be meant.
func didYouMean(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	best, distance := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := typo.Distance(strings.ToLower(word), k); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}
