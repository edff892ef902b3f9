package database

import "fmt"

const masked = "***"

// Password is a secret that prints as ***, whatever the verb or encoder. The value hides behind a function, because
// fmt shows the unexported fields of a struct without asking its methods.
type Password struct{ reveal func() string }

// NewPassword hides a value. The empty string is no password.
func NewPassword(value string) Password {
	if value == "" {
		return Password{}
	}
	return Password{reveal: func() string { return value }}
}

// Reveal returns the value, "" when there is none. Only what sends it to a server may ask.
func (p Password) Reveal() string {
	if p.reveal == nil {
		return ""
	}
	return p.reveal()
}

// IsSet reports whether there is a password.
func (p Password) IsSet() bool { return p.reveal != nil }

// String is *** or, without a password, empty.
func (p Password) String() string {
	if p.reveal == nil {
		return ""
	}
	return masked
}

// GoString is String.
func (p Password) GoString() string { return p.String() }

// Format prints String for every verb.
func (p Password) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(p.String())) }

// MarshalText is String, for JSON, YAML and zap.
func (p Password) MarshalText() ([]byte, error) { return []byte(p.String()), nil }
