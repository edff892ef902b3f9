package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// field is one field of a schedule after it was read.
type field struct {
	text    string // normalized
	plain   bool   // values only: no '*', range or step
	any     bool   // contains a bare '*' or '?'
	none    bool   // only what is in monthly
	monthly monthly
}

// field reads a list of items.
func (s *source) field(rule fieldRule, t token) (field, *ScheduleError) {
	f := field{plain: true}
	var texts []string
	for rest, more := t, true; more; {
		var part token
		part, rest, more = rest.cut(",")
		it, err := s.item(rule, part)
		if err != nil {
			return f, err
		}
		f.monthly = f.monthly.or(it.monthly)
		if it.kind == itemMonthly {
			continue
		}
		texts = append(texts, it.normalized(rule))
		f.plain = f.plain && it.kind == itemValue && it.step == 0
		f.any = f.any || it.kind == itemAny && it.step == 0
	}
	if f.none = len(texts) == 0; f.none {
		texts = []string{"*"}
	}
	f.text = strings.Join(texts, ",")
	return f, nil
}

type itemKind int

const (
	itemValue itemKind = iota
	itemRange
	itemAny
	itemMonthly // in the item's monthly
)

// item is one element of a list: a value, a range or '*', each perhaps with a step. A range that wraps has a high
// beyond the field's maximum: hours 22-2 are 22-26.
type item struct {
	kind      itemKind
	low, high int
	step      int // 0 is none
	monthly   monthly
}

func (s *source) item(rule fieldRule, t token) (item, *ScheduleError) {
	base, stepText, hasStep := t.cut("/")
	if isSpread(base.text) {
		return s.spread(rule, base, stepText, hasStep)
	}
	if m, found, err := s.monthly(rule, base); found {
		if err == nil && hasStep {
			err = s.fault(t.span(), "a step behind "+brief(base.text), "L, W and # stand for single days; write them without a step")
		}
		return item{kind: itemMonthly, monthly: m}, err
	}
	it, err := s.base(rule, base)
	if err != nil || !hasStep {
		return it, err
	}
	if it.kind == itemValue { // N/step runs to the end of the field
		it.high = rule.max
	}
	it.step, err = s.step(rule, stepText, it)
	return it, err
}

// base reads what stands before the step.
func (s *source) base(rule fieldRule, t token) (item, *ScheduleError) {
	switch {
	case t.text == "*", t.text == "?" && rule.day:
		return item{kind: itemAny, low: rule.min, high: rule.max}, nil
	case t.text == "?":
		return item{}, s.fault(t.span(), "? in the field "+rule.name, "write *; ? is for the two day fields")
	}
	lowText, highText, isRange := t.cut("-")
	low, err := s.value(rule, lowText)
	if err != nil {
		return item{}, err
	}
	if !isRange {
		low = rule.fold(low)
		return item{kind: itemValue, low: low, high: low}, nil
	}
	high, err := s.value(rule, highText)
	if err != nil {
		return item{}, err
	}
	if low > rule.max { // 7-n and 7-7
		low, high = rule.fold(low), rule.fold(high)
	}
	if high < low {
		high += rule.size()
	}
	return item{kind: itemRange, low: low, high: high}, nil
}

// fold makes 7 a Sunday.
func (r fieldRule) fold(value int) int {
	if value > r.max {
		return value - r.size()
	}
	return value
}

func (s *source) step(rule fieldRule, t token, it item) (int, *ScheduleError) {
	step, ok := number(t.text)
	count := it.high - it.low + 1
	switch {
	case !ok:
		return 0, s.fault(t.span(), fmt.Sprintf("step %s is not a number", quote(t.text)), "write a whole number behind the slash, like */15")
	case step == 0:
		return 0, s.fault(t.span(), "step 0", "a step is at least 1")
	case step > count:
		problem := fmt.Sprintf("step %s is larger than its range %d-%d", brief(t.text), it.low, rule.fold(it.high))
		return 0, s.fault(t.span(), problem, fmt.Sprintf("a step here is at most %d", count))
	}
	return step, nil
}

// value reads a number or a name. Days of the week go to 7 here.
func (s *source) value(rule fieldRule, t token) (int, *ScheduleError) {
	for i, name := range rule.names {
		if strings.EqualFold(name, t.text) || strings.EqualFold(rule.long[i], t.text) {
			return rule.min + i, nil
		}
	}
	n, ok := number(t.text)
	if !ok {
		return 0, s.notAValue(rule, t)
	}
	top := rule.max
	if rule.day && rule.names != nil {
		top = 7
	}
	if n < rule.min || n > top {
		return 0, s.fault(t.span(), fmt.Sprintf("%s %s is outside %d-%d", rule.name, brief(t.text), rule.min, top), "")
	}
	return n, nil
}

// number reads decimal digits; a number too long to be anything becomes one that no field allows.
func number(text string) (int, bool) {
	if text == "" {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 1 << 30, true
	}
	return n, true
}

// notAValue explains the most likely thing that was meant.
func (s *source) notAValue(rule fieldRule, t token) *ScheduleError {
	upper := strings.ToUpper(t.text)
	problem := fmt.Sprintf("%s %s is not a number", rule.name, quote(t.text))
	switch {
	case t.text == "":
		return s.fault(span{max(t.offset-1, 0), 1}, "half a range or step in the field "+rule.name, "write both ends, like 1-5")
	case strings.Contains(t.text, "*"):
		return s.fault(t.span(), problem, "* stands alone or before a step, like */15")
	case upper == "L" && rule.day, upper == "W" && rule.day:
		return s.fault(t.span(), upper+" inside a range", "L, W and # stand for single days; write L-3 for three days before the last")
	}
	return s.fault(t.span(), problem, rule.hint(upper))
}

// hint names the values that a field knows beside numbers.
func (r fieldRule) hint(upper string) string {
	if strings.IndexFunc(upper, func(c rune) bool { return c > unicode.MaxASCII }) >= 0 {
		return "write it in ASCII, with plain blanks" // no-break spaces and wide digits look right and are not
	}
	if r.names == nil {
		return ""
	}
	for _, name := range r.names {
		if strings.HasPrefix(upper, name) {
			return "write " + name
		}
	}
	return fmt.Sprintf("names are %s to %s", r.names[0], r.names[len(r.names)-1])
}

// normalized writes the item so that robfig's parser understands it. What wraps becomes a list of its values.
func (it item) normalized(rule fieldRule) string {
	if it.high > rule.max {
		return it.list(rule)
	}
	text := strconv.Itoa(it.low)
	switch {
	case it.kind == itemAny:
		text = "*"
	case it.kind == itemRange || it.step > 0:
		text += "-" + strconv.Itoa(it.high)
	}
	if it.step > 0 {
		text += "/" + strconv.Itoa(it.step)
	}
	return text
}

func (it item) list(rule fieldRule) string {
	var values []string
	for v := it.low; v <= it.high; v += max(it.step, 1) {
		values = append(values, strconv.Itoa(rule.fold(v)))
	}
	return strings.Join(values, ",")
}
