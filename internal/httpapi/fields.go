package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cronlatch/cronlatch/locking"
)

// The upper limit of ttl_seconds; the lower one is 1.
const (
	maxTTLSeconds = int64(locking.MaxTTL / time.Second)
)

// fields turns what was sent into values, and collects everything that is wrong with it.
type fields struct {
	given members
	wrong []fieldError
}

// check answers for the name in the path, too, so that a caller learns everything at once.
func (f *fields) check(resource string) error {
	if err := locking.ValidateResource(resource); err != nil {
		f.add("resource", "invalid", "%s", clause(err))
	}
	return f.problem()
}

// problem is everything that is wrong, or nil.
func (f *fields) problem() error {
	if f.wrong == nil {
		return nil
	}
	return &problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: "some of what was sent cannot be used", Errors: f.wrong}
}

func (f *fields) add(field, code, format string, args ...any) {
	f.wrong = append(f.wrong, fieldError{field, code, fmt.Sprintf(format, args...)})
}

// field is what a call knows of one of its fields before it looks at the value.
type field struct {
	name     string
	required bool
	kinds    string // of jsontext.Kind: one of them
	article  string // the kinds in words
}

// value is a field's text when it is there and of a kind that it may have.
func (f *fields) value(d field) (jsontext.Value, bool) {
	v, ok := f.given[d.name]
	switch {
	case !ok && d.required:
		f.add(d.name, "required", "is missing")
	case ok && v.Kind() == 'n':
		f.add(d.name, "null", "is null; it must be %s", d.article)
	case ok && !strings.ContainsRune(d.kinds, rune(v.Kind())):
		f.add(d.name, "type", "must be %s", d.article)
	default:
		return v, ok
	}
	return nil, false
}

// text is a string without the white space around it, and not blank.
func (f *fields) text(name string) (string, bool) {
	v, ok := f.value(field{name, true, `"`, "a string"})
	if !ok {
		return "", false
	}
	s, err := jsontext.AppendUnquote(nil, v)
	text := strings.TrimSpace(string(s))
	if err != nil || text == "" {
		f.add(name, "blank", "is blank")
		return "", false
	}
	return text, true
}

func (f *fields) owner() string {
	owner, ok := f.text("owner")
	if !ok {
		return ""
	}
	if err := locking.ValidateOwner(owner); err != nil {
		f.add("owner", "invalid", "%s", clause(err))
	}
	return owner
}

func (f *fields) reason() string {
	reason, ok := f.text("reason")
	switch {
	case ok && len(reason) > locking.MaxReasonBytes:
		f.add("reason", "invalid", "has %d bytes; at most %d are allowed", len(reason), locking.MaxReasonBytes)
	case ok && strings.Contains(reason, "\x00"):
		f.add("reason", "invalid", "has a NUL")
	}
	return reason
}

func (f *fields) ttl() time.Duration {
	return time.Duration(f.integer(field{name: "ttl_seconds", required: true}, maxTTLSeconds)) * time.Second
}

// token is 0 when none was given.
func (f *fields) token(required bool) int64 {
	return f.integer(field{name: "fencing_token", required: required}, locking.MaxToken)
}

// integerText is JSON's form of an integer. 30.0 and 3e1 are the same number to some readers and an error to others.
var integerText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// integer is a number from 1 to high.
func (f *fields) integer(d field, high int64) int64 {
	d.kinds, d.article = "0", "an integer"
	v, ok := f.value(d)
	if !ok {
		return 0
	}
	if !integerText.Match(v) {
		f.add(d.name, "type", "must be an integer, written without fraction and exponent")
		return 0
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 1 || n > high {
		f.add(d.name, "range", "must be from 1 to %d", high)
		return 0
	}
	return n
}

func (f *fields) boolean(name string) bool {
	v, ok := f.value(field{name, false, "tf", "true or false"})
	return ok && v.Kind() == 't'
}

// metadata is the object byte for byte; nil when none was given.
func (f *fields) metadata() json.RawMessage {
	v, ok := f.value(field{"metadata", false, "{", "an object"})
	if !ok {
		return nil
	}
	if err := locking.ValidateMetadata(json.RawMessage(v)); err != nil {
		f.add("metadata", "invalid", "%s", clause(err))
	}
	return json.RawMessage(v)
}

// clause is what an error of the rules says about its argument; the field is the subject.
func clause(err error) string {
	if invalid, ok := errors.AsType[*locking.InvalidError](err); ok {
		return strings.TrimPrefix(invalid.Problem, "name ")
	}
	return "cannot be used"
}
