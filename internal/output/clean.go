package output

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// acts reports whether a terminal (or a reader that splits lines) could take the character as an instruction: C0 and
// C1 controls (ESC, CSI, newline), DEL, format characters (bidirectional overrides, zero width), line separators.
func acts(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Clean makes text of unknown origin fit for one line on a terminal: what could act is written as a Go escape
// (\n, \x1b, \u202e), and so is every byte that is not UTF-8. Text without such characters comes back unchanged; a
// backslash stays one backslash, so the form is for reading and not for decoding.
func Clean(s string) string { return clean(s, func(rune) bool { return false }) }

// CleanLines is Clean for text of several lines: newline and tab stay as they are.
func CleanLines(s string) string {
	return clean(s, func(r rune) bool { return r == '\n' || r == '\t' })
}

func clean(s string, keep func(rune) bool) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || acts(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case acts(r) && !keep(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}

// EscapeJSON writes the characters that could act on a terminal, and that JSON encoders leave as they are (DEL, C1,
// format characters, U+0085, U+2028), as JSON escapes. In a JSON text they can only stand inside strings, so the
// value stays the same. The newlines between and after values stay.
func EscapeJSON(text []byte) []byte {
	return escapeActing(text, func(r rune) string {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	})
}

// escapeActing escapes inside a quoted text; wide writes the characters beyond four hexadecimal digits, which JSON
// and YAML do differently.
func escapeActing(text []byte, wide func(rune) string) []byte {
	first := bytes.IndexFunc(text, escapable)
	if first < 0 {
		return text
	}
	var b bytes.Buffer
	b.Write(text[:first])
	for _, r := range string(text[first:]) {
		switch {
		case !escapable(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(wide(r))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

func escapable(r rune) bool { return r >= 0x7f && acts(r) }
