package locking

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// The limits of a lock's metadata. The depth is far below what any database's JSON reader stands.
const (
	MaxMetadataBytes = 16 << 10
	maxMetadataDepth = 64
)

// ValidateMetadata is the rule for metadata, nil included: it accepts what both databases store without changing its meaning: a JSON object whose text is valid
// UTF-8 and whose strings have no NUL and no half of a surrogate pair (jsonb refuses both, in the middle of a batch).
func ValidateMetadata(m json.RawMessage) error {
	if len(m) == 0 {
		return nil
	}
	switch {
	case len(m) > MaxMetadataBytes:
		return invalid("metadata", "has %d bytes; at most %d are allowed", len(m), MaxMetadataBytes)
	case !utf8.Valid(m):
		return invalid("metadata", "is not valid UTF-8")
	case !json.Valid(m) || bytes.TrimLeft(m, " \t\r\n")[0] != '{':
		return invalid("metadata", "is not a JSON object")
	case hasBadEscape(m):
		return invalid("metadata", "has a \\u0000 or half of a surrogate pair")
	}
	return validateTree(m)
}

// validateTree bounds the depth and the numbers: 1e999999 is JSON, and no database's number.
func validateTree(m json.RawMessage) error {
	var object map[string]any
	if err := json.Unmarshal(m, &object); err != nil {
		return invalid("metadata", "has a number that is out of range") // all else was looked at before
	}
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(m); i++ {
		switch c := m[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			depth++
			deepest = max(deepest, depth)
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
	}
	if deepest > maxMetadataDepth {
		return invalid("metadata", "is nested %d deep; at most %d are allowed", deepest, maxMetadataDepth)
	}
	return nil
}

// hasBadEscape walks the escapes of valid JSON text.
func hasBadEscape(m []byte) bool {
	for i := 0; i < len(m); i++ {
		if m[i] != '\\' {
			continue
		}
		i++ // what is escaped; a second backslash escapes nothing after it
		if m[i] != 'u' {
			continue
		}
		r := hexRune(m[i+1 : i+5])
		i += 4
		switch {
		case r == 0, r >= 0xDC00 && r < 0xE000:
			return true
		case r >= 0xD800 && r < 0xDC00:
			if !startsLowSurrogate(m[i+1:]) {
				return true
			}
			i += 6
		}
	}
	return false
}

func startsLowSurrogate(m []byte) bool {
	if len(m) < 6 || m[0] != '\\' || m[1] != 'u' {
		return false
	}
	r := hexRune(m[2:6])
	return r >= 0xDC00 && r < 0xE000
}

func hexRune(digits []byte) rune {
	n, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil {
		return 0 // json.Valid has seen four hex digits; NUL is refused anyway
	}
	return rune(n)
}
