package configs

import (
	"maps"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/jobs"
)

const (
	paramsShape = `{month: {pattern: "\\d{4}-\\d{2}"}}`
	paramShape  = `{type: integer, default: 10}`
)

func paramFields() []field[paramDraft] {
	return []field[paramDraft]{
		{
			key: "type", initial: string(jobs.ParamString), doc: "string, integer or boolean.",
			bind: func(p *paramDraft) sink {
				return choice[jobs.ParamType]{into: &p.Type, words: []jobs.ParamType{jobs.ParamString, jobs.ParamInteger, jobs.ParamBoolean}}
			},
		},
		{
			key: "pattern", doc: "A regular expression (RE2) that the whole text must match. Nothing in it is replaced.",
			bind: func(p *paramDraft) sink { return text{into: &p.Pattern, raw: true} },
		},
		{
			key: "enum", doc: "What the value may be.",
			bind: func(p *paramDraft) sink { return paramValues{&p.enum} },
		},
		{
			key: "default", doc: "The value of a run that is not given one. A job with a schedule, or that comes after others, needs it.",
			bind: func(p *paramDraft) sink { return paramValue{&p.initial} },
		},
		{
			key: "description", doc: "What it is, for people.",
			bind: func(p *paramDraft) sink { return text{into: &p.Description} },
		},
		{
			key: "leading_dash", initial: "false", doc: "true: the value may begin with `-`, and a program may take it for an option.",
			bind: func(p *paramDraft) sink { return boolean{&p.LeadingDash} },
		},
	}
}

// paramDraft is a parameter as it is read.
type paramDraft struct {
	jobs.Param

	initial *node   // default
	enum    []*node // with variables replaced
	key     *node
	at      present
}

// paramValue is a sink for a text, a whole number or a boolean, of which the type is checked later.
type paramValue struct{ into **node }

func (s paramValue) read(r *reader, n *node, name string) {
	switch n.kind {
	case kindText:
		if value, ok := r.text(n, name, false); ok {
			*s.into = value
		}
	case kindInteger, kindBool:
		*s.into = n
	default:
		r.refuse(n, codeType, "%s must be a text, a whole number or a boolean, not %s", name, n.describe())
	}
}

// paramValues is a sink for a list of what paramValue takes.
type paramValues struct{ into *[]*node }

func (s paramValues) read(r *reader, n *node, name string) {
	switch {
	case n.kind != kindList:
		r.refuse(n, codeType, `%s must be a list such as ["a", "b"], not %s`, name, n.describe())
		return
	case len(n.items) == 0:
		r.refuse(n, codeEmpty, "%s is an empty list; give it an item, or remove the key", name)
		return
	}
	for _, item := range n.items {
		if !r.spend() {
			return
		}
		var value *node
		(paramValue{&value}).read(r, item, "an item of "+name)
		if value != nil {
			*s.into = append(*s.into, value)
		}
	}
}

// paramMap is a sink for parameters by name.
type paramMap struct{ into *map[string]*paramDraft }

func (paramMap) empty() string { return "{}" }

func (s paramMap) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, "%s must be a map such as %s, not %s", name, paramsShape, n.describe())
		return
	}
	all, variables := map[string]*paramDraft{}, map[string]*node{}
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		if p.key.kind != kindText {
			continue // reported with the tree
		}
		own := name + "." + abbreviate(p.key.text)
		variable := jobs.ParamVariable(p.key.text)
		switch other := variables[variable]; {
		case !jobs.CheckParamName(p.key.text):
			r.refuse(p.key, codeParam, "the name of a parameter must be a letter and up to 62 letters, digits, _ and -, not %q", abbreviate(p.key.text))
			continue
		case other != nil:
			r.refuse(p.key, codeConflict, "the parameters %s (line %d) and %s would both be %s; rename one of them", other.text, other.at.line, p.key.text, variable)
			continue
		case p.value.kind != kindMap:
			r.refuse(p.value, codeType, "%s must be a map such as %s, or {} for any text, not %s", own, paramShape, p.value.describe())
			continue
		}
		variables[variable] = p.key
		d := &paramDraft{key: p.key}
		setDefaults(paramFields(), d)
		before := len(r.problems)
		d.at = table[paramDraft]{fields: paramFields(), where: " in " + own, prefix: own + "."}.read(r, p.value, d)
		if len(r.problems) == before {
			r.checkParam(d, own)
		}
		all[p.key.text] = d
	}
	*s.into = all
}

// checkParam looks at a parameter as a whole, and completes it.
func (r *reader) checkParam(d *paramDraft, name string) {
	if n := d.at["pattern"]; n != nil {
		if d.Type != jobs.ParamString {
			r.refuse(n, codeConflict, "%s.pattern is for texts, and the type is %s; remove one of them", name, d.Type)
			return
		}
		if _, err := jobs.CompileParamPattern(d.Pattern); err != nil {
			r.refuse(n, codeParam, "%s.pattern is not a regular expression: %s", name, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			return
		}
	}
	if n := d.at["enum"]; n != nil && d.Type == jobs.ParamBoolean {
		r.refuse(n, codeConflict, "%s.enum is of no use with the type boolean, which has two values; remove it", name)
		return
	}
	var enum []string
	for _, n := range d.enum { // without d.Enum: an item need not be in the list so far
		if r.fits(d, n, "an item of "+name+".enum") && slices.Contains(enum, n.text) {
			r.refuse(n, codeConflict, "%s.enum has %q twice; remove one of them", name, abbreviate(n.text))
		}
		enum = append(enum, n.text)
	}
	d.Enum = enum
	if d.initial != nil && r.fits(d, d.initial, name+".default") {
		d.Default = &d.initial.text
	}
}

// fits reports whether a run could be given the value.
func (r *reader) fits(d *paramDraft, n *node, name string) bool {
	if want := kindOf(d.Type); n.kind != want && !n.loose {
		r.refuse(n, codeParam, "%s must be %s, as the type says, not %s", name, typeWords[d.Type], n.describe())
		return false
	}
	if _, message := d.Check(n.text); message != "" {
		r.refuse(n, codeParam, "%s %s", name, message)
		return false
	}
	return true
}

func kindOf(t jobs.ParamType) kind {
	switch t {
	case jobs.ParamInteger:
		return kindInteger
	case jobs.ParamBoolean:
		return kindBool
	default:
		return kindText
	}
}

//nolint:gochecknoglobals // a closed list
var typeWords = map[jobs.ParamType]string{
	jobs.ParamString: "a text", jobs.ParamInteger: "a whole number", jobs.ParamBoolean: "true or false",
}

// params makes the parameters of a job. Nobody gives any to a run that the calendar makes, or that follows another one.
func (r *reader) params(d *jobDraft) map[string]jobs.Param {
	if len(d.params) == 0 {
		return nil
	}
	why := ""
	switch {
	case len(d.chain.after) > 0:
		why = "comes after others"
	case d.at["schedule"] != nil:
		why = "has a schedule"
	}
	all := make(map[string]jobs.Param, len(d.params))
	for _, name := range slices.Sorted(maps.Keys(d.params)) {
		p := d.params[name]
		if why != "" && !p.at.has("default") {
			r.refuse(p.key, codeParam, "the parameter %s of %s has no default, and the job %s: nobody would give it one; write for example %s: {default: %s}",
				name, d.title(), why, name, exampleOf(p.Type))
		}
		all[name] = p.Param
	}
	return all
}

func exampleOf(t jobs.ParamType) string {
	return map[jobs.ParamType]string{jobs.ParamString: `"x"`, jobs.ParamInteger: "1", jobs.ParamBoolean: "false"}[t]
}

// paramDefinition is the canonical form of a parameter.
type paramDefinition struct {
	jobs.Param

	Name string
}

func paramDefinitions(all map[string]jobs.Param) []paramDefinition {
	var list []paramDefinition
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, paramDefinition{all[name], name})
	}
	return list
}

func (paramValue) schema() *schema { return &schema{AnyOf: valueSchemas()} }

func (paramValues) schema() *schema {
	return &schema{Type: "array", Items: &schema{AnyOf: valueSchemas()}, MinItems: 1}
}

func valueSchemas() []*schema {
	return []*schema{{Type: "string"}, {Type: "integer"}, {Type: "boolean"}}
}

func (paramMap) schema() *schema {
	return mapSchema(patternSchema(jobs.ParamNamePattern), tableSchema(paramFields()))
}
