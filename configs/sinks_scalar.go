package configs

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// choice is a sink for one word of a list.
type choice[T ~string] struct {
	into  *T
	words []T
}

func (s choice[T]) read(r *reader, n *node, name string) {
	known := make([]string, len(s.words))
	for i, word := range s.words {
		known[i] = string(word)
	}
	if n.kind != kindText {
		r.refuse(n, codeChoice, "%s must be %s, not %s", name, series(known, "or"), n.describe())
		return
	}
	value := r.scalar(n)
	switch {
	case value == nil:
	case slices.Contains(s.words, T(value.text)):
		*s.into = T(value.text)
	default:
		r.refuse(n, codeChoice, "%s must be %s, not %s%s", name, series(known, "or"), shown(n), didYouMean(n.text, known))
	}
}

// boolean is a sink for a boolean.
type boolean struct{ into *bool }

func (s boolean) read(r *reader, n *node, name string) {
	value := r.scalar(n)
	switch {
	case value == nil:
	case (value.kind == kindBool || value.loose) && (value.text == "true" || value.text == "false"):
		*s.into = value.text == "true"
	case value.kind == kindText && !value.loose:
		word := map[bool]string{true: "true", false: "false"}[slices.Contains([]string{"yes", "on", "y", "true", "1"}, strings.ToLower(n.text))]
		r.refuse(n, codeType, "%s must be true or false, not %s; write %s without quotes", name, n.describe(), word)
	default:
		r.refuse(n, codeType, "%s must be true or false, not %s", name, n.describe())
	}
}

// number is a sink for a whole number within bounds.
type number struct {
	into     *int
	min, max int
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func (s number) read(r *reader, n *node, name string) {
	value := r.scalar(n)
	if value == nil {
		return
	}
	switch {
	case len(value.text) > 18 && decimal.MatchString(value.text): // the parser reads it as text
		r.refuse(n, codeRange, "%s must be from %d to %d, not %s", name, s.min, s.max, abbreviate(n.text))
	case value.kind == kindText && !value.loose && decimal.MatchString(value.text):
		r.refuse(n, codeType, "%s must be a whole number, not %s; write it without quotes", name, n.describe())
	case value.kind == kindInteger && !decimal.MatchString(value.text):
		r.refuse(n, codeType, "%s must be a plain decimal number, not %s, which YAML readers understand differently", name, n.text)
	case value.kind != kindInteger && !value.loose, !decimal.MatchString(value.text):
		r.refuse(n, codeType, "%s must be a whole number, not %s", name, n.describe())
	default:
		v, err := strconv.Atoi(value.text)
		if err != nil || v < s.min || v > s.max {
			r.refuse(n, codeRange, "%s must be from %d to %d, not %s", name, s.min, s.max, abbreviate(n.text))
			return
		}
		*s.into = v
	}
}

// duration is a sink for a duration within bounds. A max of 0 is no bound.
type duration struct {
	into     *time.Duration
	min, max time.Duration
}

func (s duration) read(r *reader, n *node, name string) {
	value := r.scalar(n)
	switch {
	case value == nil:
		return
	case value.kind == kindInteger || value.kind == kindFloat:
		r.refuse(n, codeDuration, "%s needs a unit; write for example %ss or %sm", name, abbreviate(n.text), abbreviate(n.text))
		return
	case value.kind != kindText:
		r.refuse(n, codeDuration, "%s must be a duration such as 30s, 5m, 1h30m or 2d, not %s", name, n.describe())
		return
	}
	d, err := ParseDuration(value.text)
	limit := s.max
	if limit == 0 {
		limit = math.MaxInt64
	}
	switch {
	case err != nil:
		r.refuse(n, codeDuration, "%s: %s %s", name, shown(n), err.Error())
	case d < s.min:
		r.refuse(n, codeRange, "%s must be at least %s, not %s", name, formatDuration(s.min), abbreviate(n.text))
	case d > limit:
		r.refuse(n, codeRange, "%s must be at most %s, not %s", name, formatDuration(s.max), abbreviate(n.text))
	default:
		*s.into = d
	}
}
