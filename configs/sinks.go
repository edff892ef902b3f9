package configs

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// text is a sink for one text.
type text struct {
	into  *string
	raw   bool // variables are not replaced
	check func(string) error
}

func (s text) read(r *reader, n *node, name string) {
	value, ok := r.text(n, name, s.raw)
	if !ok {
		return
	}
	if strings.TrimSpace(value.text) == "" {
		r.refuse(n, codeEmpty, "%s is empty; give it a value, or remove the key", name)
		return
	}
	if s.check != nil {
		if err := s.check(value.text); err != nil {
			var p *partProblem
			if errors.As(err, &p) {
				r.refusePart(value, p.part, p.code, p.message)
				return
			}
			r.refuse(n, codeType, "%s %s", name, err.Error())
			return
		}
	}
	*s.into = value.text
}

// Error makes a partProblem usable as the error of a check.
func (p *partProblem) Error() string { return p.message }

// text is the node as text with its variables replaced; false when it is something else, which is reported.
func (r *reader) text(n *node, name string, raw bool) (*node, bool) {
	if n.kind != kindText {
		r.notText(n, name)
		return nil, false
	}
	value := n
	if !raw {
		if value = r.scalar(n); value == nil {
			return nil, false
		}
	}
	if i := strings.IndexByte(value.text, 0); i >= 0 {
		r.refusePart(value, part{i, 1}, codeEncoding, name+" holds a NUL character, which no program can be given")
		return nil, false
	}
	return value, true
}

func (r *reader) notText(n *node, name string) {
	switch {
	case n.kind == kindNull && n.loose: // an alias that was already reported
	case n.kind == kindNull:
		r.refuse(n, codeEmpty, `%s is empty; write "" for an empty text, or remove it`, name)
	case n.kind == kindList || n.kind == kindMap:
		r.refuse(n, codeType, "%s must be one text, not %s", name, n.describe())
	default:
		r.refuse(n, codeType, `%s must be text, not %s; write it in quotes: "%s"`, name, n.describe(), abbreviate(n.text))
	}
}

// choice is a sink for one word of a list.
type choice[T ~string] struct {
	into  *T
	words []T
	later []T // words that a later version knows
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
	case slices.Contains(s.later, T(value.text)):
		r.refuse(n, codeUnsupported, "%s %q is not supported by this version; it knows %s", name, value.text, series(known, "and"))
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

//nolint:gochecknoglobals // a compiled pattern is immutable
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
	case value.kind != kindInteger && !(value.loose && decimal.MatchString(value.text)):
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

// list is a sink for a list of texts. It remembers the nodes, for checks of single items.
type list struct {
	into  *[]string
	nodes *[]*node // of the items in into; nil when nobody asks
	raw   bool
	blank bool // empty texts are fine
}

func (s list) read(r *reader, n *node, name string) {
	if n.kind != kindList {
		r.refuse(n, codeType, "%s must be a list of texts such as [%s], not %s", name, listExample(n), n.describe())
		return
	}
	if len(n.items) == 0 {
		r.refuse(n, codeEmpty, "%s is an empty list; give it an item, or remove the key", name)
		return
	}
	var values []string
	var nodes []*node
	whole := true
	for _, item := range n.items {
		if !r.spend(item) {
			return
		}
		itemName := "an item of " + name
		value, ok := r.text(item, itemName, s.raw)
		if ok && value.text == "" && !s.blank {
			r.refuse(item, codeEmpty, "%s is empty; give it a value, or remove it", itemName)
		}
		whole = whole && ok
		if ok {
			values, nodes = append(values, value.text), append(nodes, value)
		}
	}
	if whole {
		*s.into = values
		if s.nodes != nil {
			*s.nodes = nodes
		}
	}
}

func listExample(n *node) string {
	if n.kind != kindText || strings.ContainsAny(n.text, "\n\"\\") {
		return `"a", "b"`
	}
	words := strings.Fields(abbreviate(n.text))
	for i, word := range words {
		words[i] = strconv.Quote(word)
	}
	return strings.Join(words, ", ")
}

// dictionary is a sink for a map of texts; its keys are added to what is there.
type dictionary struct {
	into  *map[string]string
	check func(key string) error
}

func (dictionary) empty() string { return "{}" }

func (s dictionary) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, `%s must be a map such as {NAME: "value"}, not %s`, name, n.describe())
		return
	}
	all := make(map[string]string, len(*s.into)+len(n.pairs))
	for key, value := range *s.into {
		all[key] = value
	}
	for _, p := range n.pairs {
		if !r.spend(p.key) {
			return
		}
		if p.key.kind != kindText {
			continue // reported with the tree
		}
		if err := s.check(p.key.text); err != nil {
			r.refuse(p.key, codeEnv, "%s", err.Error())
			continue
		}
		if value, ok := r.text(p.value, fmt.Sprintf("%s.%s", name, abbreviate(p.key.text)), false); ok {
			all[p.key.text] = value.text
		}
	}
	*s.into = all
}
