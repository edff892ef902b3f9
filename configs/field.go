package configs

import (
	"fmt"
	"slices"
)

// field is one key of a map with fixed keys, bound to where its value goes in a T. A slice of them is a field table.
type field[T any] struct {
	key      string
	initial  string // the default, as one would write it; "" leaves T's zero value
	env      string // the environment variable with the same meaning; "" when there is none
	shared   bool   // a job's key that defaults: may set too
	required bool
	unless   string // another key that makes a required one optional
	doc      string // one sentence for the reference page
	bind     func(*T) sink
}

// sink takes the value of one key.
type sink interface {
	// read stores the node's value, or reports why it cannot. name is the key as messages call it.
	read(r *reader, n *node, name string)
	// schema is what it takes, without descriptions: a new one with every call.
	schema() *schema
}

// table reads one map.
type table[T any] struct {
	fields []field[T]
	where  string                         // " in lock", ` in job "x"`; "" at the top
	prefix string                         // "lock."
	hint   func(key, where string) string // the message about an unknown key; "" for the usual one
}

// present is what a map has: the node of each key, nil for a key that was probably meant and is misspelled.
type present map[string]*node

func (p present) has(key string) bool {
	_, ok := p[key]
	return ok
}

// setDefaults reads the default of every field into it, as if it were written in the file.
func setDefaults[T any](fields []field[T], into *T) []Problem {
	r := &reader{findings: findings{source: newSource("defaults", "")}}
	walk(fields, into, "", func(l leaf) {
		if l.initial != "" {
			l.sink.read(r, &node{kind: kindText, text: l.initial, loose: true, from: l.path}, l.path)
		}
	})
	return r.problems
}

// leaf is a field that is no group.
type leaf struct {
	path, initial, env string
	sink               sink
}

// walk visits all leaves below a table, bound to into.
func walk[T any](fields []field[T], into *T, prefix string, visit func(leaf)) {
	for _, f := range fields {
		bound := f.bind(into)
		if g, ok := bound.(interface {
			walk(prefix string, visit func(leaf))
		}); ok {
			g.walk(prefix+f.key+".", visit)
			if f.env == "" {
				continue
			} // else it can be one word as well
		}
		visit(leaf{path: prefix + f.key, initial: f.initial, env: f.env, sink: bound})
	}
}

// read stores a map's values and returns its nodes by key.
func (t table[T]) read(r *reader, n *node, into *T) present {
	found := present{}
	for _, p := range n.pairs {
		if !r.spend() {
			return found
		}
		if p.key.kind != kindText {
			continue // reported with the tree
		}
		i := slices.IndexFunc(t.fields, func(f field[T]) bool { return f.key == p.key.text })
		if i < 0 {
			meant := t.unknown(r, p.key)
			if meant == "" || slices.Contains(keysOfSecrets, meant) {
				r.hideAll(n, p.key.text) // a key of secrets may be misspelled beyond guessing
			}
			if !found.has(meant) {
				found[meant] = nil
			}
			continue
		}
		f := t.fields[i]
		found[f.key] = p.value
		switch {
		case p.value.kind != kindNull:
			f.bind(into).read(r, p.value, t.prefix+f.key)
		case !p.value.loose:
			r.refuse(p.key, codeEmpty, "%s has no value; %s", t.prefix+f.key, f.wayOut(into))
		}
	}
	for _, f := range t.fields {
		if f.required && !found.has(f.key) && !found.has(f.unless) {
			wayOut := f.wayOut(into)
			if _, ok := f.bind(into).(interface{ empty() string }); !ok {
				wayOut = "add it"
			}
			r.refuse(n, codeRequired, "the key %s is missing%s; %s", t.prefix+f.key, t.where, wayOut)
		}
	}
	return found
}

// wayOut says what to do about a key without a value.
func (f field[T]) wayOut(into *T) string {
	e, ok := f.bind(into).(interface{ empty() string })
	switch {
	case ok && f.required:
		return fmt.Sprintf("write %q when there are none", f.key+": "+e.empty())
	case ok:
		return fmt.Sprintf("remove the key, or write %q", f.key+": "+e.empty())
	case f.required:
		return "give it one"
	default:
		return "give it one, or remove the key"
	}
}

// unknown reports a key, and returns the one that was probably meant: itself when a later version knows it.
func (t table[T]) unknown(r *reader, key *node) string {
	if t.hint != nil {
		if sentence := t.hint(key.text, t.where); sentence != "" {
			r.refuse(key, codeUnknownKey, "%s", sentence)
			return key.text
		}
	}
	if r.full() {
		r.dropped++
		return "" // no need to think about what was meant
	}
	r.refuse(key, codeUnknownKey, "unknown key %q%s%s", abbreviate(key.text), t.where, didYouMean(key.text, t.keys()))
	return closest(key.text, t.keys())
}

func (t table[T]) keys() []string {
	keys := make([]string, len(t.fields))
	for i, f := range t.fields {
		keys[i] = f.key
	}
	return keys
}

// group is a sink for a map with fixed keys.
type group[U any] struct {
	fields []field[U]
	into   *U
	shape  string // an example
}

func (g group[U]) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, "%s must be a map such as %s, not %s", name, g.shape, n.describe())
		return
	}
	table[U]{fields: g.fields, where: " in " + name, prefix: name + "."}.read(r, n, g.into)
}

func (g group[U]) walk(prefix string, visit func(leaf)) { walk(g.fields, g.into, prefix, visit) }
