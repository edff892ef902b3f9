package configs

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// text is a sink for one text.
type text struct {
	into  *string
	raw   bool // variables are not replaced
	check func(string) error
	like  string // a regular expression for the schema: it matches whatever check accepts; "" is any text
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
			var p *partError
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

// Error makes a partError usable as the error of a check.
func (p *partError) Error() string { return p.message }

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
		if !r.spend() {
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
	maps.Copy(all, *s.into)
	for _, p := range n.pairs {
		if !r.spend() {
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
