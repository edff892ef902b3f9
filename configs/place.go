package configs

import (
	"slices"
)

// place is a part of one line. Columns and lengths count characters.
type place struct {
	line, column, length int
}

// locate finds how long the scalar that starts at line and column is on its first line. It looks at no more characters
// than the value can have been written with: a file may be one line of a megabyte.
func (s *source) locate(line, column int, value string) place {
	rest := s.rest(line, column)
	if len(rest) == 0 {
		return place{line, column, 1}
	}
	if isQuote(rest[0]) {
		if _, end := decodeLine(rest, longestEscape*len(value)+1); end > 0 {
			return place{line, column, end}
		}
	}
	length := 0
	for _, r := range value {
		if length == len(rest) || rest[length] != r {
			break
		}
		length++
	}
	return place{line, column, max(length, 1)}
}

// longestEscape is how many bytes decodeLine makes at most of what is one byte of a value: \U00000041.
const longestEscape = 10

// within maps length bytes of a scalar's value, from offset on, to the place in the file. It gives the whole scalar when
// these bytes are the whole value, or when they cannot be found on the scalar's first line (block scalars, folded lines,
// replaced variables).
func (s *source) within(whole place, value string, p part) place {
	if p.offset <= 0 && (p.length <= 0 || p.length >= len(value)) || p.offset < 0 || p.offset > len(value) {
		return whole
	}
	rest := s.rest(whole.line, whole.column)
	if len(rest) == 0 {
		return whole
	}
	end := min(p.offset+max(p.length, 1), len(value))
	line, _ := decodeLine(rest, end)
	// Every byte before the end must have been read from this line, or the columns mean something else.
	if len(line.text) < end || string(line.text[:end]) != value[:end] {
		return whole
	}
	from, to := line.at[p.offset], line.at[end]
	return place{whole.line, whole.column + from, max(to-from, 1)}
}

// decoded is the value of a scalar as far as one line shows it, and for each of its bytes (and the end) the column
// where it was written, from 0.
type decoded struct {
	text []byte
	at   []int
}

func (d *decoded) add(text string, column int) {
	d.text = append(d.text, text...)
	d.at = append(d.at, slices.Repeat([]int{column}, len(text))...)
}

func isQuote(r rune) bool { return r == '"' || r == '\'' }

// decodeLine reads a scalar at the start of a line's rest, up to a little more than limit bytes. end is behind its
// closing quote; 0 when the scalar is plain, or its quote is not among what was read.
func decodeLine(rest []rune, limit int) (d decoded, end int) {
	quote, i := rune(0), 0
	if isQuote(rest[0]) {
		quote, i = rest[0], 1
	}
	for i < len(rest) && len(d.text) <= limit {
		r := rest[i]
		switch {
		case quote == '\'' && r == quote && i+1 < len(rest) && rest[i+1] == quote:
			d.add("'", i)
			i += 2
		case quote != 0 && r == quote:
			d.at = append(d.at, i)
			return d, i + 1
		case quote == '"' && r == '\\':
			d.add(unescape(rest[i:]), i)
			i += 2
		default:
			d.add(string(r), i)
			i++
		}
	}
	d.at = append(d.at, min(i, len(rest)))
	return d, 0
}

// unescape reads the escapes whose meaning is one plain character. Others give a NUL, which no value has, so that the
// comparison in within fails and the whole scalar is shown.
func unescape(rest []rune) string {
	if len(rest) < 2 {
		return "\x00"
	}
	switch rest[1] {
	case '"', '\\', '/', ' ':
		return string(rest[1])
	case 'n':
		return "\n"
	case 't':
		return "\t"
	default:
		return "\x00"
	}
}
