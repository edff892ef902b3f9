package jobs

import "fmt"

// Secret is a text that no log, answer or error shows: it prints as ***. Reveal is the one way to it.
type Secret string

const hidden = "***"

// Reveal is the text itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (Secret) String() string { return hidden }

// GoString hides the text.
func (Secret) GoString() string { return hidden }

// Format hides the text, whatever the verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText hides the text, in JSON and elsewhere.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
