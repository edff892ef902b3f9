package jobs

import "strings"

// sqlPiece is a part of a text in which a semicolon means nothing, or a single character outside of one.
type sqlPiece struct {
	end   int    // behind it
	kind  string // "a text in quotes", ...; "" for a character outside
	blank bool   // white space, a comment or a semicolon: it begins no statement
	open  bool   // the end of the text came before its own
}

const (
	pieceText    = "a text in quotes"
	pieceName    = "a name in quotes"
	pieceDollar  = "a text in dollar quotes"
	pieceComment = "a comment"
)

// sqlPieceAt is the piece that begins at i, by PostgreSQL's rules, of which SQLite's are nearly a part: comments nest,
// a backslash escapes in E”, texts can be in dollar quotes.
func sqlPieceAt(text string, i int) sqlPiece {
	rest := text[i:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "{{"):
		return sqlPiece{end: max(tokenEnd(text, i), i+2)}
	case strings.HasPrefix(rest, "--"):
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		return sqlPiece{end: i + end, kind: pieceComment, blank: true}
	case strings.HasPrefix(rest, "/*"):
		return comment(text, i)
	case c == '\'':
		return quoted(text, i, pieceText, escapes(text, i))
	case c == '"', c == '`':
		return quoted(text, i, pieceName, false)
	case c == '$' && (i == 0 || !isWordByte(text[i-1])):
		return dollar(text, i)
	case c == ';', c == ' ', c == '\t', c == '\r', c == '\n', c == '\f', c == '\v':
		return sqlPiece{end: i + 1, blank: true}
	}
	return sqlPiece{end: i + 1}
}

// quoted ends at the next quote that is not doubled.
func quoted(text string, i int, kind string, escapes bool) sqlPiece {
	quote := text[i]
	for at := i + 1; at < len(text); at++ {
		switch {
		case text[at] == '\\' && escapes:
			at++
		case text[at] == quote && at+1 < len(text) && text[at+1] == quote:
			at++
		case text[at] == quote:
			return sqlPiece{end: at + 1, kind: kind}
		}
	}
	return sqlPiece{end: len(text), kind: kind, open: true}
}

// escapes reports whether the quote at i is that of the text E”.
func escapes(text string, i int) bool {
	return i > 0 && (text[i-1] == 'e' || text[i-1] == 'E') && (i == 1 || !isWordByte(text[i-2]))
}

func comment(text string, i int) sqlPiece {
	depth := 0
	for at := i; at < len(text); at++ {
		switch {
		case strings.HasPrefix(text[at:], "/*"):
			depth++
			at++
		case strings.HasPrefix(text[at:], "*/"):
			at++
			if depth--; depth == 0 {
				return sqlPiece{end: at + 1, kind: pieceComment, blank: true}
			}
		}
	}
	return sqlPiece{end: len(text), kind: pieceComment, open: true}
}

// dollar is $tag$ up to the same tag, or a single dollar when there is no tag.
func dollar(text string, i int) sqlPiece {
	end := i + 1
	for end < len(text) && (isWordByte(text[end]) && text[end] != '$') {
		end++
	}
	number := end > i+1 && text[i+1] >= '0' && text[i+1] <= '9'
	if end == len(text) || text[end] != '$' || number {
		return sqlPiece{end: i + 1}
	}
	tag := text[i : end+1]
	closing := strings.Index(text[end+1:], tag)
	if closing < 0 {
		return sqlPiece{end: len(text), kind: pieceDollar, open: true}
	}
	return sqlPiece{end: end + 1 + closing + len(tag), kind: pieceDollar}
}

// isWordByte reports whether c can be inside a name; every byte beyond ASCII can.
func isWordByte(c byte) bool {
	return isLetter(c) || c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 0x80
}
