package configs

import (
	"encoding/json"
	"strconv"
)

// SchemaName is the name of the JSON Schema beside the sample configuration.
const SchemaName = "cronlatch.schema.json"

// SchemaJSON is a JSON Schema (draft-07) of configuration files, for editors and other checkers. It is made from the field
// tables, so that it knows the keys, types, words, defaults and sentences that the loader knows. It is closed: a key that
// the loader refuses is refused. What takes more than one value to judge (a schedule that never fires, a name that is
// used and not defined, bounds of durations) is left to the loader, which accepts nothing that the schema refuses.
func SchemaJSON() []byte {
	top := tableSchema(daemonFields())
	top.Schema, top.Title = "http://json-schema.org/draft-07/schema#", "cronlatch configuration"
	text, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		panic(err) // it holds nothing but texts, numbers and maps of them
	}
	return append(text, '\n')
}

// schema is the part of JSON Schema that is used here.
type schema struct {
	Schema      string   `json:"$schema,omitempty"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Type        string   `json:"type,omitempty"`
	Default     any      `json:"default,omitempty"`
	Enum        []any    `json:"enum,omitempty"`
	Pattern     string   `json:"pattern,omitempty"`
	MinLength   int      `json:"minLength,omitempty"`
	Minimum     *int     `json:"minimum,omitempty"`
	Maximum     *int     `json:"maximum,omitempty"`
	Items       *schema  `json:"items,omitempty"`
	MinItems    int      `json:"minItems,omitempty"`
	UniqueItems bool     `json:"uniqueItems,omitempty"`
	Required    []string `json:"required,omitempty"`

	Properties           map[string]*schema `json:"properties,omitempty"`
	PropertyNames        *schema            `json:"propertyNames,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"` // false, or the schema of every value

	AnyOf []*schema `json:"anyOf,omitempty"`
	OneOf []*schema `json:"oneOf,omitempty"`
	Not   *schema   `json:"not,omitempty"`
}

// tableSchema is the schema of a map with fixed keys.
func tableSchema[T any](fields []field[T]) *schema {
	var into T
	out := &schema{Type: "object", Properties: map[string]*schema{}, AdditionalProperties: false}
	for _, f := range fields {
		s := f.bind(&into).schema()
		s.Description, s.Default = f.doc, s.value(f.initial)
		out.Properties[f.key] = s
		switch {
		case f.required && f.unless != "":
			out.AnyOf = append(out.AnyOf, &schema{Required: []string{f.key}}, &schema{Required: []string{f.unless}})
		case f.required:
			out.Required = append(out.Required, f.key)
		}
	}
	return out
}

// value is a default in the type of the schema; nil when there is none.
func (s *schema) value(initial string) any {
	types := s.AnyOf
	if len(types) == 0 {
		types = []*schema{s}
	}
	for _, t := range types {
		switch {
		case initial == "":
			return nil
		case t.Type == "integer" || len(t.Enum) > 0 && t.Enum[0] == any(1):
			n, _ := strconv.Atoi(initial) // TestDefaultsAreValid
			return n
		case t.Type == "boolean":
			return initial == "true"
		}
	}
	return initial
}

// jobSchema is that of a job or a hook: exactly one of workKeys says what it runs.
func jobSchema(fields []field[jobDraft]) *schema {
	out := tableSchema(fields)
	for _, key := range workKeys {
		out.OneOf = append(out.OneOf, &schema{Required: []string{key}})
	}
	return out
}

// mapSchema is that of a map whose keys are names.
func mapSchema(names, values *schema) *schema {
	return &schema{Type: "object", PropertyNames: names, AdditionalProperties: values}
}

// textSchema is a text that is not blank.
func textSchema() *schema { return &schema{Type: "string", Pattern: `\S`} }

func patternSchema(pattern string) *schema { return &schema{Type: "string", Pattern: pattern} }

// replaced is what a text with a variable in it may be, too: whatever the variable holds.
func replaced(s *schema) *schema {
	if s.Type == "string" && s.Pattern == `\S` {
		return s // which such a text is already
	}
	return &schema{AnyOf: []*schema{s, patternSchema(`\$(\$|\{)`)}}
}

// oneOrMore is one of something, or a list of them.
func oneOrMore(one *schema) *schema {
	return &schema{AnyOf: []*schema{one, {Type: "array", Items: one, MinItems: 1}}}
}
