package jobs

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
)

// H stands for a value that the job's name picks, so that jobs which only need to run once an hour or a day do not all
// run at its start. It depends on the name and the field alone: no restart, no replica and no other job changes it.

// spreadDays is the last day of the month that H picks: every month has it.
const spreadDays = 28

// isSpread tells H and H(...) from everything else.
func isSpread(text string) bool {
	upper := strings.ToUpper(text)
	return upper == "H" || strings.HasPrefix(upper, "H(")
}

// spread reads H, H(0-29), H/15 or H(0-29)/10: one value, or a step that begins at one.
func (s *source) spread(rule fieldRule, t, stepText token, hasStep bool) (item, *ScheduleError) {
	if s.job == "" {
		return item{}, s.fault(t.span(), "H spreads jobs by their names, and there is no job here", "name the job, or write a number")
	}
	within, err := s.spreadRange(rule, t, hasStep)
	if err != nil {
		return item{}, err
	}
	if !hasStep {
		value := rule.fold(within.low + s.pick(rule, within.high-within.low+1))
		return item{kind: itemValue, low: value, high: value}, nil
	}
	if within.step, err = s.step(rule, stepText, within); err != nil {
		return item{}, err
	}
	within.low += s.pick(rule, within.step)
	if within.low > rule.max { // a Sunday that was written as 7
		within.low, within.high = rule.fold(within.low), rule.fold(within.high)
	}
	return within, nil
}

// spreadRange is the values that H may take.
func (s *source) spreadRange(rule fieldRule, t token, hasStep bool) (item, *ScheduleError) {
	all := item{kind: itemRange, low: rule.min, high: rule.max}
	if len(t.text) == 1 {
		if rule.max == 31 && !hasStep {
			all.high = spreadDays
		}
		return all, nil
	}
	inner := token{t.text[2:], t.offset + 2}
	text, closed := strings.CutSuffix(inner.text, ")")
	inner.text = text
	lowText, highText, isRange := inner.cut("-")
	if !closed || !isRange {
		return item{}, s.fault(t.span(), quote(t.text)+" is not understood", "write H, or H with a range like H(0-29)")
	}
	low, err := s.value(rule, lowText)
	if err != nil {
		return item{}, err
	}
	high, err := s.value(rule, highText)
	if err != nil {
		return item{}, err
	}
	if high < low {
		return item{}, s.fault(inner.span(), fmt.Sprintf("the range %s runs backwards", brief(inner.text)), "write the smaller value first")
	}
	return item{kind: itemRange, low: low, high: high}, nil
}

// pick is a number from 0 to count-1 for this job and this field, each equally likely over all names.
func (s *source) pick(rule fieldRule, count int) int {
	sum := sha256.Sum256([]byte("H\x00" + rule.name + "\x00" + s.job))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(count))
}
