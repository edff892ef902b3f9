package jobs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// ParamType is what a parameter's text must be.
type ParamType string

// The types of parameters.
const (
	ParamString  ParamType = "string"
	ParamInteger ParamType = "integer"
	ParamBoolean ParamType = "boolean"
)

// Param declares one parameter of a job.
type Param struct {
	Description string
	Type        ParamType
	Pattern     string   // a regular expression (RE2) that the whole text must match; "" is any text
	Enum        []string // what the text may be; nil is anything
	Default     *string  // nil: a run must be given the parameter
	LeadingDash bool     // the text may begin with "-"
}

// The limits of parameters, in bytes.
const (
	MaxParam  = 4 << 10  // one text
	MaxParams = 32 << 10 // all texts of a run
)

// The codes of ParamFault.
const (
	ParamUnknown     = "unknown"      // the job does not declare it
	ParamRequired    = "required"     // it has no default and was not given
	ParamWrongType   = "type"         // not an integer or a boolean
	ParamNoMatch     = "pattern"      // the pattern does not match
	ParamNotInEnum   = "enum"         // not one of the texts there are
	ParamEncoding    = "encoding"     // a NUL character, or not UTF-8
	ParamLeadingDash = "leading_dash" // a program could take it for an option
	ParamTooLong     = "too_long"     // more than MaxParam, or MaxParams with the others
)

// ParamFault is what is wrong with one parameter.
type ParamFault struct {
	Field   string // "params.month"
	Code    string
	Message string // a sentence without a final dot; the text that was given is not in it
}

// ParamsError is what is wrong with the parameters of a run, sorted by field. It is never empty.
type ParamsError struct {
	Job    string
	Faults []ParamFault
}

func (e *ParamsError) Error() string {
	sentences := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		sentences[i] = f.Message
	}
	return fmt.Sprintf("jobs: the parameters of %q: %s", e.Job, strings.Join(sentences, "; "))
}

// CheckParams is what a run gets when it is given the parameters: they and the defaults of all others; nil when the job
// declares none. The error is a *ParamsError with everything that is wrong.
func (j *Job) CheckParams(given map[string]string) (map[string]string, error) {
	e := &ParamsError{Job: j.Name}
	refuse := func(name, code, message string) {
		e.Faults = append(e.Faults, ParamFault{"params." + brief(name), code, message})
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		p, known := j.Params[name]
		if !known {
			refuse(name, ParamUnknown, j.noParam(name))
			continue
		}
		total += len(given[name])
		if code, message := p.Check(given[name]); code != "" {
			refuse(name, code, "the parameter "+name+" "+message)
		}
	}
	if total > MaxParams {
		refuse("", ParamTooLong, fmt.Sprintf("all parameters together have %d bytes, and %d is the most", total, MaxParams))
		e.Faults[len(e.Faults)-1].Field = "params"
	}
	all := j.defaultParams()
	for _, name := range slices.Sorted(maps.Keys(j.Params)) {
		if _, ok := given[name]; !ok && j.Params[name].Default == nil {
			refuse(name, ParamRequired, "the parameter "+name+" is missing; it has no default")
		}
	}
	if len(e.Faults) > 0 {
		slices.SortStableFunc(e.Faults, func(a, b ParamFault) int { return strings.Compare(a.Field, b.Field) })
		return nil, e
	}
	maps.Copy(all, given)
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // no parameters are no error
	}
	return all, nil
}

// defaultParams are those that a run is not given.
func (j *Job) defaultParams() map[string]string {
	all := map[string]string{}
	for name, p := range j.Params {
		if p.Default != nil {
			all[name] = *p.Default
		}
	}
	return all
}

func (j *Job) noParam(name string) string {
	if len(j.Params) == 0 {
		return fmt.Sprintf("the job declares no parameters, and %q was given", brief(name))
	}
	return fmt.Sprintf("there is no parameter %q; the job has %s", brief(name), strings.Join(slices.Sorted(maps.Keys(j.Params)), ", "))
}

// Check says what is wrong with a text for the parameter: a code and the end of a sentence, both "" when nothing is.
func (p *Param) Check(text string) (code, message string) {
	switch {
	case strings.ContainsRune(text, 0):
		return ParamEncoding, "holds a NUL character, which no program can be given"
	case !utf8.ValidString(text):
		return ParamEncoding, "is not UTF-8"
	case len(text) > MaxParam:
		return ParamTooLong, fmt.Sprintf("has %d bytes, and %d is the most", len(text), MaxParam)
	case strings.HasPrefix(text, "-") && !p.LeadingDash:
		return ParamLeadingDash, `begins with "-", so that a program could take it for an option; the definition must say leading_dash: true to allow that`
	case p.Type == ParamInteger && !wholeNumber.MatchString(text):
		return ParamWrongType, "must be a whole number of at most 18 digits"
	case p.Type == ParamBoolean && text != "true" && text != "false":
		return ParamWrongType, "must be true or false"
	case p.Enum != nil && !slices.Contains(p.Enum, text):
		return ParamNotInEnum, "must be one of " + strings.Join(p.Enum, ", ")
	case p.Pattern == "":
		return "", ""
	}
	pattern, err := CompileParamPattern(p.Pattern)
	if err != nil || !pattern.MatchString(text) { // the loader refuses a pattern that cannot be compiled
		return ParamNoMatch, "must match the pattern " + p.Pattern + " as a whole"
	}
	return "", ""
}

var wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})$`)

// CompileParamPattern compiles a pattern so that it matches whole texts only.
func CompileParamPattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil { // alone: "a)(b" is none, whatever it stands in
		return nil, err //nolint:wrapcheck // the caller says which pattern
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`) //nolint:wrapcheck // as above
}

// CheckParamName reports whether a job can declare a parameter of that name.
func CheckParamName(name string) bool { return paramName.MatchString(name) }

// ParamNamePattern is what names of parameters match.
const ParamNamePattern = `^[A-Za-z][A-Za-z0-9_-]{0,62}$`

var paramName = regexp.MustCompile(ParamNamePattern)

// ParamVariable is the environment variable by which a command gets a parameter: dry-run is CRONLATCH_PARAM_DRY_RUN.
func ParamVariable(name string) string {
	return "CRONLATCH_PARAM_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
