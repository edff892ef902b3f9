package configs

import "github.com/cronlatch/cronlatch/jobs"

// What each sink takes, as JSON Schema. A schema may take more than its sink, and never less.

func (s text) schema() *schema {
	switch {
	case s.like == "":
		return textSchema()
	case s.raw:
		return patternSchema(s.like)
	default:
		return replaced(patternSchema(s.like))
	}
}

func (s list) schema() *schema {
	item := &schema{Type: "string"}
	if !s.blank {
		item.MinLength = 1
	}
	return &schema{Type: "array", Items: item, MinItems: 1}
}

func (dictionary) schema() *schema {
	return mapSchema(&schema{Pattern: `^[^=\x00]+$`, Not: &schema{Pattern: "^CRONLATCH_"}}, &schema{Type: "string"})
}

func (s choice[T]) schema() *schema {
	words := make([]any, len(s.words))
	for i, word := range s.words {
		words[i] = string(word)
	}
	return replaced(&schema{Enum: words})
}

func (boolean) schema() *schema { return replaced(&schema{Type: "boolean"}) }

func (s number) schema() *schema {
	return replaced(&schema{Type: "integer", Minimum: &s.min, Maximum: &s.max})
}

func (s numbers) schema() *schema {
	return &schema{Type: "array", Items: number{min: s.min, max: s.max}.schema(), MinItems: 1, UniqueItems: true}
}

const durationPattern = `^-?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w))+)$`

func (duration) schema() *schema { return replaced(patternSchema(durationPattern)) }

func (g group[U]) schema() *schema { return tableSchema(g.fields) }

func (sqlGroup) schema() *schema { return tableSchema(sqlFields()) }

func (tokenText) schema() *schema { return textSchema() }

func (headerMap) schema() *schema { return mapSchema(nil, &schema{Type: "string"}) }

func (statusRanges) schema() *schema {
	least, most := 100, 599
	code := &schema{Type: "integer", Minimum: &least, Maximum: &most}
	return oneOrMore(&schema{AnyOf: []*schema{code, patternSchema(statusRange.String())}})
}

func (pattern) schema() *schema { return textSchema() }

func (size) schema() *schema { return replaced(patternSchema(sizeText.String())) }

func (allowList) schema() *schema { return list{}.schema() }

func (hostList) schema() *schema { return list{}.schema() }

func labelSchema() *schema { return patternSchema(labelPattern.String()) }

func (labels) schema() *schema { return mapSchema(labelSchema(), replaced(labelSchema())) }

func (onlyOn) schema() *schema { return mapSchema(labelSchema(), oneOrMore(replaced(labelSchema()))) }

func (authentication) schema() *schema {
	return &schema{AnyOf: []*schema{replaced(&schema{Enum: []any{authNone, authTokens}}), tableSchema(authFields())}}
}

func (tokenList) schema() *schema { return &schema{Type: "array", Items: tableSchema(tokenFields())} }

func (instant) schema() *schema {
	return replaced(patternSchema(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`))
}

func (tagLimits) schema() *schema {
	return mapSchema(textSchema(), number{min: 1, max: 10_000}.schema())
}

func (databaseMap) schema() *schema {
	names := patternSchema(databaseName.String())
	names.Not = &schema{Enum: []any{jobs.OwnDatabase}}
	return mapSchema(names, tableSchema(targetDatabaseFields()))
}

func (s remembered) schema() *schema { return s.sink.schema() }

func (blackoutList) schema() *schema {
	return &schema{Type: "array", Items: tableSchema(blackoutFields()), MinItems: 1}
}

func (scheduleTexts) schema() *schema {
	return &schema{AnyOf: []*schema{textSchema(), list{}.schema()}}
}

func (afterList) schema() *schema { return oneOrMore(tableSchema(afterFields())) }

func (hookMap) schema() *schema { return jobSchema(hookFields()) }

func (formatVersion) schema() *schema { return &schema{Enum: []any{1}} }

func (s deferred) schema() *schema { return s.content() }

// defaultsSchema is that of the keys that defaults may set.
func defaultsSchema() *schema { return tableSchema(sharedFields()) }

func calendarsSchema() *schema { return mapSchema(nil, tableSchema(calendarFields())) }

func jobsSchema() *schema { return mapSchema(nil, jobSchema(jobFields())) }
