package jobs

import (
	"strings"
	"time"
)

// The codes of a TemplateError.
const (
	CodeResource       = "resource"        // the fault is in the template
	CodeResourceOffset = "resource-offset" // the fault is in TemplateOptions.Offset
)

// TemplateOptions is what a template needs beside its text.
type TemplateOptions struct {
	Offset   string         // resource_offset: -1mo, -2d, +1w, -1y; "" is none
	Location *time.Location // the job's zone; nil is UTC
}

// TemplateError says what is wrong with a template or its offset, and the way out.
type TemplateError struct {
	Code    string // which of the two texts is at fault
	Message string // a sentence without a position
	Offset  int    // where the fault begins, in bytes into that text
	Length  int    // how long it is, in bytes
}

func (e *TemplateError) Error() string { return e.Message }

// Template is the name of a resource, perhaps with a date in it: report:monthly-YYYY-MM. It is immutable. The zero value
// is the empty name.
//
// YYYY MM DD HH mm are replaced only where they stand between non-letters and only when YYYY is among them: COMMAND,
// SUMMARY and a lone MM stay what they are. Written together in this order (YYYYMMDD, or with ISO 8601's T as in DDTHH)
// they count when that whole run of letters stands between non-letters.
type Template struct {
	text   string
	tokens []dateToken
	offset dateOffset
	loc    *time.Location
}

// ParseTemplate reads a template. Its error is always a *TemplateError.
func ParseTemplate(text string, o TemplateOptions) (Template, error) {
	if text == "" {
		return Template{}, &TemplateError{Code: CodeResource, Message: "a resource needs a name"}
	}
	tokens := findTokens(text)
	if err := checkTokens(text, tokens); err != nil {
		return Template{}, err
	}
	t := Template{text: text, tokens: tokens, loc: time.UTC}
	if o.Location != nil {
		t.loc = o.Location
	}
	if o.Offset == "" {
		return t, nil
	}
	if len(tokens) == 0 {
		return Template{}, offsetFault(o.Offset, "an offset needs a date to shift, and "+quote(text)+
			" has none; write one into the resource, like "+brief(text)+"-YYYY-MM")
	}
	offset, err := parseOffset(o.Offset)
	if err != nil {
		return Template{}, err
	}
	t.offset = offset
	return t, nil
}

// At fills the template from a scheduled instant: the date and time that the job's zone had then, moved by the offset.
func (t Template) At(scheduled time.Time) string {
	if len(t.tokens) == 0 {
		return t.text
	}
	date := t.offset.move(scheduled.In(t.loc))
	var b strings.Builder
	end := 0
	for _, token := range t.tokens {
		b.WriteString(t.text[end:token.start])
		b.WriteString(date.Format(token.layout()))
		end = token.end
	}
	return b.String() + t.text[end:]
}

// Period is the date part of At: from where the first token begins to where the last one ends, with what stands between
// them. For report:monthly-YYYY-MM it is like 2026-05, for backup:YYYY-MM-DD/HH like 2026-05-03/06. It is false for a
// name without a date.
func (t Template) Period(scheduled time.Time) (string, bool) {
	if len(t.tokens) == 0 {
		return "", false
	}
	name, last := t.At(scheduled), t.tokens[len(t.tokens)-1] // a token is as long as what replaces it
	return name[t.tokens[0].start:last.end], true
}

// PeriodForm is how Period looks, like YYYY-MM; "" for a name without a date. Periods can be equal only when it is.
func (t Template) PeriodForm() string {
	if len(t.tokens) == 0 {
		return ""
	}
	return t.text[t.tokens[0].start:t.tokens[len(t.tokens)-1].end]
}

// String is the template as it was written.
func (t Template) String() string { return t.text }
