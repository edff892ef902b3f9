package filter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/typo"
	"github.com/cronlatch/cronlatch/jobs"
)

const (
	keySince = "since"
	keyUntil = "until"
	keyTag   = "tag"
)

// Keys are what may stand in front of a colon.
func Keys() []string {
	return []string{"job", "state", "outcome", "reason", "trigger", "replica", "resource", keyTag, "id", "attempt", keySince, keyUntil}
}

// words are the values of the keys that have a closed list of them; nil is any text.
func words(key string) []string {
	switch jobs.RunColumn(key) {
	case jobs.ColumnState:
		return texts(jobs.StatePending, jobs.StateRunning, jobs.StateHeld, jobs.StateFinished)
	case jobs.ColumnOutcome:
		return texts(jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeCancelled, jobs.OutcomeSkipped,
			jobs.OutcomeMissed, jobs.OutcomeLost)
	case jobs.ColumnTrigger:
		return texts(jobs.TriggerSchedule, jobs.TriggerCatchUp, jobs.TriggerManual, jobs.TriggerRetry, jobs.TriggerRecovery,
			jobs.TriggerBackfill, jobs.TriggerAfter, jobs.TriggerOnSuccess, jobs.TriggerOnFailure, jobs.TriggerOnAbort)
	case jobs.ColumnReason:
		return texts(jobs.ReasonOverlap, jobs.ReasonDisabled, jobs.ReasonLockHeld, jobs.ReasonNoCapacity, jobs.ReasonNoReplica,
			jobs.ReasonCatchUp, jobs.ReasonExit, jobs.ReasonSignal, jobs.ReasonStart, jobs.ReasonTimeout, jobs.ReasonDrain,
			jobs.ReasonLeaseLost, jobs.ReasonReplicaLost, jobs.ReasonStaleStart, jobs.ReasonSupervisor, jobs.ReasonRequested,
			jobs.ReasonReplaced, jobs.ReasonOncePer, jobs.ReasonLimit, jobs.ReasonUpstream, jobs.ReasonPaused,
			jobs.ReasonNoMatchingReplica)
	default:
		return nil
	}
}

func texts[T ~string](all ...T) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = string(t)
	}
	return out
}

// check is what depends on the key.
func (t *Term) check() error {
	known := words(t.Key)
	for i := range t.Values {
		v := &t.Values[i]
		if v.Prefix && !slices.Contains([]string{"job", "replica", "resource"}, t.Key) {
			return fmt.Errorf("%q ends in a \"*\", which only job, replica and resource can; quote it if it is part of the text", head(v.Text)+"*")
		}
		if known != nil && !slices.Contains(known, v.Text) {
			return fmt.Errorf("%q is no %s%s; there are %s", head(v.Text), t.Key, didYouMean(v.Text, known), strings.Join(known, ", "))
		}
		if t.Key == "id" || t.Key == "attempt" {
			if err := number(v.Text); err != nil {
				return err
			}
		}
	}
	if t.Key == keySince || t.Key == keyUntil {
		return t.checkTime()
	}
	return nil
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
