// Package resource holds the one rule for names: of resources (what is locked) and of jobs (whose default resource is
// their name).
//
// A name is 1 to 255 bytes of valid UTF-8 without control or format characters, and not "." or "..". It is compared
// byte for byte: nothing is trimmed, folded or normalized, so "a" and "A", and two spellings of "é", are different
// names. HTTP, command line, YAML and the Go API all ask Validate; a second copy of the rule would let one of them
// lock a name that another cannot release.
//
// The package does not say that two names look different to a person.
//
// The tests are a table of names with the sentence each one gets.
package resource

import (
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the longest name, in bytes.
const MaxBytes = 255

// ErrInvalid is wrapped by every error of Validate.
var ErrInvalid = errors.New("invalid name")

// Error says what is wrong with a name and where.
type Error struct {
	Message string // a clause without subject: "is empty", "has a control character (U+0007) at byte 3"
	Offset  int    // the byte at fault; 0 when it is the name as a whole
}

func (e *Error) Error() string { return "name " + e.Message }

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (*Error) Unwrap() error { return ErrInvalid }

// Validate returns nil or an *Error for the first thing wrong with name.
func Validate(name string) error {
	switch {
	case name == "":
		return &Error{Message: "is empty"}
	case name == "." || name == "..":
		return &Error{Message: fmt.Sprintf("must not be %q: clients and proxies take it for a step in a path", name)}
	case len(name) > MaxBytes:
		return &Error{Message: fmt.Sprintf("has %d bytes; at most %d are allowed", len(name), MaxBytes)}
	}
	for i, r := range name {
		if reason := unfit(name[i:], r); reason != "" {
			return &Error{Message: fmt.Sprintf("has %s at byte %d", reason, i+1), Offset: i}
		}
	}
	return nil
}

// unfit names what is wrong with the character r at the start of rest, or returns "".
func unfit(rest string, r rune) string {
	if r == utf8.RuneError {
		if _, size := utf8.DecodeRuneInString(rest); size == 1 { // a spelled-out U+FFFD has size 3 and is a character
			return fmt.Sprintf("invalid UTF-8 (0x%02X)", rest[0])
		}
	}
	switch {
	case unicode.IsControl(r):
		return fmt.Sprintf("a control character (U+%04X)", r)
	case unicode.Is(unicode.Cf, r):
		return fmt.Sprintf("an invisible format character (U+%04X)", r)
	case unicode.In(r, unicode.Zl, unicode.Zp):
		return fmt.Sprintf("a line separator (U+%04X)", r)
	}
	return ""
}
