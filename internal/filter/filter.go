package filter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is how long a filter's text may be.
const MaxBytes = 4096

// Filter is a text that was understood.
type Filter struct {
	Terms []Term
}

// Term is one condition.
type Term struct {
	Not    bool
	Key    string // "" is a word: part of the job's name
	Values []Value
	At     int // the byte at which it begins in the text, from 0
}

// Value is one text to compare with.
type Value struct {
	Text   string
	Prefix bool // whatever begins with Text

	ago time.Duration // of since and until, when the text is a duration
	at  time.Time     // and when it is an instant
}

// Error says what is wrong with one term.
type Error struct {
	Term    string // as it was written
	At      int    // the byte at which the term begins, from 0
	Problem string // a clause about the term, with the way out
}

func (e *Error) Error() string {
	return fmt.Sprintf("the term %q at character %d: %s", e.Term, e.At+1, e.Problem)
}

// Parse understands a text about runs, or says in an *Error what is wrong with the first term that it does not understand.
func Parse(text string) (Filter, error) { return ofRuns().parse(text) }

// ParseJobs understands a text about jobs.
func ParseJobs(text string) (Filter, error) { return ofJobs().parse(text) }

// ParseAudit understands a text about the rows of the audit.
func ParseAudit(text string) (Filter, error) { return ofAudit().parse(text) }

func (l language) parse(text string) (Filter, error) {
	var f Filter
	switch {
	case len(text) > MaxBytes:
		return f, &Error{Term: head(text), Problem: fmt.Sprintf("the filter has %d bytes; at most %d are allowed", len(text), MaxBytes)}
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return f, &Error{Term: head(text), Problem: "the filter is not valid UTF-8, or has a NUL"}
	}
	rest := text
	for {
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		if rest == "" {
			return f, nil
		}
		at := len(text) - len(rest)
		term, end, err := l.parseTerm(rest)
		if err != nil {
			return Filter{}, &Error{Term: head(rest[:end]), At: utf8.RuneCountInString(text[:at]), Problem: err.Error()}
		}
		term.At = at
		f.Terms = append(f.Terms, term)
		rest = rest[end:]
	}
}

// head is as much of a text as a message repeats.
func head(text string) string {
	const shown = 64
	if len(text) <= shown {
		return text
	}
	return strings.ToValidUTF8(text[:shown], "") + "..."
}

// parseTerm reads the first term of a text that does not begin with a space; end is the byte behind it.
func (l language) parseTerm(text string) (t Term, end int, err error) {
	written, end, err := cut(text)
	if err != nil {
		return t, end, err
	}
	if t.Not = strings.HasPrefix(written, "-"); t.Not {
		written = written[1:]
	}
	var k key // of a word: it has no name, and takes any text
	if name, values, found := strings.Cut(written, ":"); found && !strings.Contains(name, `"`) {
		t.Key, written = name, values
		if k, err = l.key(name); err != nil {
			return t, end, err
		}
	}
	if t.Values, err = t.parseValues(written); err != nil {
		return t, end, err
	}
	return t, end, t.check(l, k)
}

// cut finds the end of a term: the first space outside quotes.
func cut(text string) (term string, end int, err error) {
	quoted, escaped := false, false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case !quoted && unicode.IsSpace(r):
			return text[:i], i, nil
		}
	}
	if quoted {
		return text, len(text), errors.New(`a quote is not closed; \" is a quote in quotes`)
	}
	return text, len(text), nil
}

// parseValues splits at the commas outside quotes. A word has no list: a comma in it is a comma.
func (t *Term) parseValues(text string) (values []Value, err error) {
	for {
		v, rest, err := nextValue(text, t.Key != "")
		if err != nil {
			return nil, err
		}
		if v.Text == "" && !v.Prefix {
			return nil, errors.New("a value is empty; after the key and its colon come values, with commas between them and no space")
		}
		values = append(values, v)
		if rest == "" {
			return values, nil
		}
		text = rest[1:] // behind the comma
	}
}

// nextValue reads one value; what is left is empty or begins with a comma.
func nextValue(text string, list bool) (v Value, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		end := len(text)
		if at := strings.IndexByte(text, ','); list && at >= 0 {
			end = at
		}
		v.Text, rest = text[:end], text[end:]
		if strings.Contains(v.Text, `"`) {
			return v, rest, errors.New("a quote stands in the middle of a value; quote all of it")
		}
		v.Text, v.Prefix = strings.CutSuffix(v.Text, "*")
		return v, rest, checkStar(v.Text)
	}
	var b strings.Builder
	i := 1
	for ; text[i] != '"'; i++ { // cut has seen the closing quote
		if text[i] == '\\' {
			i++
		}
		b.WriteByte(text[i])
	}
	v.Text, rest = b.String(), text[i+1:]
	rest, v.Prefix = strings.CutPrefix(rest, "*")
	if rest != "" && (!list || rest[0] != ',') {
		return v, rest, errors.New("something follows the closing quote; quote all of the value")
	}
	return v, rest, nil
}

func checkStar(text string) error {
	if strings.Contains(text, "*") {
		return errors.New(`a "*" stands for the rest of a value and can only be its end; a "*" in the name itself must be quoted`)
	}
	return nil
}

// String is a text that means the same.
func (f Filter) String() string {
	terms := make([]string, len(f.Terms))
	for i, t := range f.Terms {
		var b strings.Builder
		if t.Not {
			b.WriteByte('-')
		}
		if t.Key != "" {
			b.WriteString(t.Key + ":")
		}
		for j, v := range t.Values {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(v.String())
		}
		terms[i] = b.String()
	}
	return strings.Join(terms, " ")
}

// String is the value as it can be written.
func (v Value) String() string {
	text := v.Text
	if quoteNeeded(text) {
		text = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	}
	if v.Prefix {
		text += "*"
	}
	return text
}

func quoteNeeded(text string) bool {
	return text == "" || strings.HasPrefix(text, "-") || strings.ContainsAny(text, `",*:\`) || strings.IndexFunc(text, unicode.IsSpace) >= 0
}

// TermOf is one term as a text, for programs that build filters.
func TermOf(key, value string) string {
	return Filter{[]Term{{Key: key, Values: []Value{{Text: value}}}}}.String()
}

// number checks an id or an attempt.
func number(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 1 || text != strconv.FormatInt(n, 10) {
		return fmt.Errorf("%q is not a number from 1 on", head(text))
	}
	return nil
}
