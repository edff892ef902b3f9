package jobs

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// dateToken is one token and where it stands in the template, in bytes.
type dateToken struct {
	kind       string
	start, end int
}

// layout is the token in the language of time.Format.
func (t dateToken) layout() string {
	switch t.kind {
	case "YYYY":
		return "2006"
	case "MM":
		return "01"
	case "DD":
		return "02"
	case "HH":
		return "15"
	default:
		return "04"
	}
}

// findTokens looks at each run of letters. Without a YYYY among the tokens there are none.
func findTokens(text string) []dateToken {
	var tokens []dateToken
	start := -1
	for i, r := range text {
		switch letter := unicode.IsLetter(r); {
		case letter && start < 0:
			start = i
		case !letter && start >= 0:
			tokens = append(tokens, tokensOfRun(text[start:i], start)...)
			start = -1
		}
	}
	if start >= 0 {
		tokens = append(tokens, tokensOfRun(text[start:], start)...)
	}
	if !slices.ContainsFunc(tokens, func(t dateToken) bool { return t.kind == "YYYY" }) {
		return nil
	}
	return tokens
}

// tokensOfRun takes a run of letters apart: tokens from large to small, with T allowed between DD and HH. Anything else
// in it, and the run is a word.
func tokensOfRun(run string, offset int) []dateToken {
	var tokens []dateToken
	at := 0
	for _, kind := range []string{"YYYY", "MM", "DD", "T", "HH", "mm"} {
		if !strings.HasPrefix(run[at:], kind) {
			continue
		}
		if kind == "T" {
			if strings.HasSuffix(run[:at], "DD") && strings.HasPrefix(run[at:], "THH") {
				at++
			}
			continue
		}
		tokens = append(tokens, dateToken{kind, offset + at, offset + at + len(kind)})
		at += len(kind)
	}
	if at < len(run) {
		return nil
	}
	return tokens
}

// checkTokens refuses the likeliest slip: mm is the minute, MM the month, and a minute without its hour says nothing.
func checkTokens(text string, tokens []dateToken) error {
	has := func(kind string) int {
		return slices.IndexFunc(tokens, func(t dateToken) bool { return t.kind == kind })
	}
	if !utf8.ValidString(text) {
		return &TemplateError{Code: CodeResource, Message: "a resource's name is UTF-8", Length: len(text)}
	}
	if i := has("mm"); i >= 0 && has("HH") < 0 {
		return &TemplateError{
			Code:    CodeResource,
			Message: "mm is the minute, and there is no hour (HH) in " + quote(text) + "; the month is MM",
			Offset:  tokens[i].start,
			Length:  len(tokens[i].kind),
		}
	}
	return nil
}
