package configs

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// The limits of a file. The parser needs memory that is quadratic in the nesting: 100,000 times "- " (200 KB) took 24 GB.
const (
	maxBytes   = 1 << 20
	maxNesting = 32
)

// screenBytes refuses what is not text. It returns the text without byte order mark.
func (f *findings) screenBytes(data []byte) string {
	refuse := func(code, message string) string {
		f.source = newSource(f.source.name, "")
		f.addAt(place{1, 1, 1}, code, message)
		return ""
	}
	switch {
	case len(data) > maxBytes:
		return refuse(codeTooLarge, fmt.Sprintf("the file has more than %d bytes (1 MiB), the most that is read", maxBytes))
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}), bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return refuse(codeEncoding, "the file is UTF-16; save it as UTF-8")
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	f.source = newSource(f.source.name, text)
	line, column := 1, 1
	for i, r := range text {
		if reason := unreadable(text[i:], r); reason != "" {
			f.source.unread = true
			f.addAt(place{line, column, 1}, codeEncoding, reason)
			return ""
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return text
}

func unreadable(rest string, r rune) string {
	switch {
	case r == utf8.RuneError && !strings.HasPrefix(rest, string(utf8.RuneError)):
		return fmt.Sprintf("byte 0x%02X is not UTF-8; save the file as UTF-8", rest[0])
	case r == '\r' && !strings.HasPrefix(rest, "\r\n"):
		return "a carriage return without line feed; save the file with Unix or Windows line ends"
	case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7F, r >= 0x80 && r < 0xA0 && r != 0x85:
		return fmt.Sprintf("control character U+%04X is not allowed in YAML; in double quotes it can be written as \\x%02X", r, r)
	}
	return ""
}

// screenTokens refuses, with a sentence that helps, what the parser would answer with a riddle or with gigabytes.
func (f *findings) screenTokens(tokens token.Tokens) {
	sc := screener{findings: f}
	for i, tk := range tokens {
		if tk.Type == token.CommentType {
			continue
		}
		if tk.Position.Line != sc.line {
			sc.newLine(tk.Position.Line)
		}
		if !sc.nesting(tk) || !sc.check(tokens, i) {
			break
		}
		sc.previous = tk
	}
}

// screener walks over the tokens once.
type screener struct {
	*findings

	previous *token.Token
	line     int
	columns  []int // of the open block collections
	flow     int   // open brackets
	value    *token.Token
	colon    bool // this line, or this part of a flow map, had its colon
	ended    bool // the document's end was seen
}

func (sc *screener) newLine(line int) {
	sc.line = line
	if sc.flow == 0 {
		sc.colon, sc.value = false, nil
	}
}

// refuse reports the token and tells the walk to stop: one such problem makes the following ones guesses.
func (sc *screener) refuse(tk *token.Token, code, message string) bool {
	length := utf8.RuneCountInString(strings.TrimSpace(tk.Value))
	sc.addAt(place{tk.Position.Line, tk.Position.Column, length}, code, message)
	return false
}

// nesting keeps the depth; false when it is too much.
func (sc *screener) nesting(tk *token.Token) bool {
	switch tk.Type {
	case token.SequenceStartType, token.MappingStartType:
		sc.flow++
	case token.SequenceEndType, token.MappingEndType:
		sc.flow = max(sc.flow-1, 0)
	default:
		first := sc.previous == nil || sc.previous.Position.Line != tk.Position.Line || sc.previous.Type == token.SequenceEntryType
		if sc.flow == 0 && first {
			sc.indent(tk.Position.Column)
		}
	}
	if len(sc.columns)+sc.flow > maxNesting {
		return sc.refuse(tk, codeTooLarge, fmt.Sprintf("nested deeper than %d levels", maxNesting))
	}
	return true
}

func (sc *screener) indent(column int) {
	for len(sc.columns) > 0 && sc.columns[len(sc.columns)-1] >= column {
		sc.columns = sc.columns[:len(sc.columns)-1]
	}
	sc.columns = append(sc.columns, column)
}

func (sc *screener) check(tokens token.Tokens, i int) bool {
	tk := tokens[i]
	switch tk.Type {
	case token.TagType:
		return sc.refuse(tk, codeSyntax, fmt.Sprintf("tags such as %s are not used here; remove it, quotes make text", tk.Value))
	case token.MappingKeyType:
		return sc.refuse(tk, codeSyntax, `"? " starts a key that is not plain text; write "key: value"`)
	case token.DirectiveType:
		return sc.refuse(tk, codeSyntax, "directives such as %YAML are not used here; remove the line")
	case token.AliasType:
		return sc.alias(tokens, i)
	case token.DocumentHeaderType, token.DocumentEndType:
		return sc.document(tk)
	case token.CollectEntryType, token.SequenceStartType, token.MappingStartType:
		sc.colon, sc.value = false, nil
	case token.SequenceEndType, token.MappingEndType:
		sc.colon, sc.value = true, nil
	case token.MappingValueType:
		return sc.mappingValue(tk)
	default:
		if !sc.text(tk) {
			return false
		}
	}
	if sc.ended {
		return sc.secondDocument(tk)
	}
	return true
}

// text remembers where a value starts, and refuses "a: b" in a flow map, which this parser reads as one text.
func (sc *screener) text(tk *token.Token) bool {
	block := sc.previous != nil && (sc.previous.Type == token.LiteralType || sc.previous.Type == token.FoldedType)
	if tk.Type == token.StringType && !block && strings.Contains(tk.Value, ": ") {
		return sc.refuse(tk, codeSyntax, colonSentence)
	}
	if sc.colon && sc.value == nil {
		sc.value = tk
	}
	return true
}

const colonSentence = `a value that holds ": " must be in quotes as a whole`

func (sc *screener) document(tk *token.Token) bool {
	if tk.Type == token.DocumentHeaderType && sc.previous != nil {
		return sc.secondDocument(tk)
	}
	sc.ended = tk.Type == token.DocumentEndType && sc.previous != nil
	return true
}

func (sc *screener) secondDocument(tk *token.Token) bool {
	return sc.refuse(tk, codeDocuments, "a second document starts here; one file is one document")
}

// mappingValue refuses a second colon: "description: Report: monthly".
func (sc *screener) mappingValue(tk *token.Token) bool {
	if !sc.colon {
		sc.colon, sc.value = true, nil
		return true
	}
	if sc.value == nil || sc.value.Position.Line != tk.Position.Line {
		return sc.refuse(tk, codeSyntax, `a ":" that belongs to no key; put text that holds ": " in quotes`)
	}
	start := sc.value.Position.Column
	at := place{tk.Position.Line, start, tk.Position.Column - start + 1}
	sc.addAt(at, codeSyntax, colonSentence)
	return false
}

// alias refuses a star that was meant as text: "schedule: * * * * *", "schedule: */5 * * * *".
func (sc *screener) alias(tokens token.Tokens, i int) bool {
	tk := tokens[i]
	rest := sc.source.rest(tk.Position.Line, tk.Position.Column)
	rest = rest[:min(len(rest), maxSnippet)]
	name := string(rest)[min(len(rest), 1):]
	if end := strings.IndexAny(name, " \t,]}"); end >= 0 {
		name = name[:end]
	}
	if name != "" && !strings.ContainsAny(name, "*/?#") && !goesOn(tokens[min(i+2, len(tokens)):], tk.Position.Line) {
		return true
	}
	text, _, _ := strings.Cut(string(rest), " #")
	text = strings.TrimRight(text, " \t")
	at := place{tk.Position.Line, tk.Position.Column, utf8.RuneCountInString(text)}
	sc.addAt(at, codeSyntax, `text that starts with "*" must be in quotes; without them "*name" repeats the value marked &name`)
	return false
}

// goesOn says that more than the end of a flow collection follows on the line.
func goesOn(tokens token.Tokens, line int) bool {
	if len(tokens) == 0 || tokens[0].Position.Line != line {
		return false
	}
	switch tokens[0].Type {
	case token.CommentType, token.CollectEntryType, token.SequenceEndType, token.MappingEndType, token.MappingValueType:
		return false
	default:
		return true
	}
}
