package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The tokens of a command.
//
// {{ .Period }}, {{ .ScheduledAt }}, {{ .Resource }} and {{ .Params.NAME }}, with or without the spaces, are replaced
// wherever they stand in an element of `command`; {{ "{{" }} is two braces, for commands that have templates of their own. Everything else
// between {{ and }} is an error. This is a closed list on purpose and not text/template: a definition cannot loop,
// call or fail half way, and what is replaced is one whole piece of one element.

// Values is what the tokens stand for in one run.
type Values struct {
	Period      string    // the date part of the resource: 2026-05
	ScheduledAt time.Time // written as RFC 3339 in UTC
	Resource    string    // what is locked: report:monthly-2026-05
	Params      map[string]string
}

// Tokens says which tokens a job has, beside those that all have.
type Tokens struct {
	Period bool             // the resource has a date in it; without one there is no .Period
	Params map[string]Param // that the job declares
}

// sample is values for all tokens.
func (t Tokens) sample() Values {
	v := Values{Period: "2026-05", ScheduledAt: time.Unix(0, 0), Resource: "x", Params: map[string]string{}}
	for name := range t.Params {
		v.Params[name] = "x"
	}
	return v
}

// TokenError says which part of an element is not understood.
type TokenError struct {
	Message string // a sentence without a position
	Offset  int    // where the fault begins, in bytes into the element
	Length  int    // how long it is, in bytes
}

func (e *TokenError) Error() string { return e.Message }

const (
	tokenPeriod = ".Period"
	tokenParams = ".Params."
	tokenBraces = `"{{"`
)

// CheckArg returns a *TokenError for the first token of an element that Expand would refuse.
func CheckArg(arg string, t Tokens) error {
	values := t.sample()
	_, err := expandArg(arg, func(token string) (string, string) {
		if token == tokenPeriod && !t.Period {
			return "", "{{ .Period }} is the date part of the resource, and the resource of this job has none; add one, like YYYY-MM"
		}
		return values.lookUp(token)
	})
	return err
}

// Expand is the command with its tokens replaced. What replaces them is not looked at again.
func Expand(command []string, v Values) ([]string, error) {
	argv := make([]string, len(command))
	for i, arg := range command {
		expanded, err := expandArg(arg, v.lookUp)
		if err != nil {
			return nil, fmt.Errorf("expand item %d of the command: %w", i+1, err)
		}
		argv[i] = expanded
	}
	return argv, nil
}

// lookUp is the value of a token, or what is wrong with it.
func (v Values) lookUp(token string) (value, fault string) {
	switch token {
	case tokenPeriod:
		return v.Period, ""
	case ".ScheduledAt":
		return v.ScheduledAt.UTC().Format(time.RFC3339), ""
	case ".Resource":
		return v.Resource, ""
	case tokenBraces:
		return "{{", ""
	}
	if name, ok := strings.CutPrefix(token, tokenParams); ok {
		return v.param(name)
	}
	known := []string{".Period", ".ScheduledAt", ".Resource"}
	sentence := fmt.Sprintf("{{ %s }} is not known; there are {{ %s }}, and {{ %s }} for two braces", brief(token), strings.Join(known, " }}, {{ "), tokenBraces)
	if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, "."+strings.TrimPrefix(token, ".")) }); i >= 0 {
		sentence = fmt.Sprintf("{{ %s }} is not known; did you mean {{ %s }}?", brief(token), known[i])
	}
	return "", sentence
}

func (v Values) param(name string) (value, fault string) {
	if value, ok := v.Params[name]; ok {
		return value, ""
	}
	declared := strings.Join(slices.Sorted(maps.Keys(v.Params)), ", ")
	if declared == "" {
		return "", fmt.Sprintf("{{ %s%s }} is not known: the job declares no params", tokenParams, brief(name))
	}
	return "", fmt.Sprintf("{{ %s%s }} is not known: the job has the params %s", tokenParams, brief(name), declared)
}

// expandArg replaces the tokens of one element.
func expandArg(arg string, lookUp func(token string) (value, fault string)) (string, error) {
	var b strings.Builder
	for at := 0; ; {
		start := strings.Index(arg[at:], "{{")
		if start < 0 {
			return b.String() + arg[at:], nil
		}
		start += at
		end := tokenEnd(arg, start)
		if end < 0 {
			return "", &TokenError{
				Message: fmt.Sprintf(`"{{" without "}}"; write {{ %s }} for two braces`, tokenBraces),
				Offset:  start, Length: len(arg) - start,
			}
		}
		value, fault := lookUp(strings.TrimSpace(arg[start+2 : end-2]))
		if fault != "" {
			return "", &TokenError{Message: fault, Offset: start, Length: end - start}
		}
		b.WriteString(arg[at:start])
		b.WriteString(value)
		at = end
	}
}

// tokenEnd is behind the braces that close the token at start; -1 when nothing closes it.
func tokenEnd(arg string, start int) int {
	end := strings.Index(arg[start+2:], "}}")
	if end < 0 {
		return -1
	}
	return start + 2 + end + 2
}
