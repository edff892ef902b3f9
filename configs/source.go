package configs

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is the text of a file, for showing and measuring places in it.
type source struct {
	name   string
	lines  [][]rune
	hidden []hiddenText
	broken bool // it could not be read as a whole: more is hidden than needs to be
	unread bool // nothing of it could be read, so that what is hidden goes by how lines look

	masked     map[int][]rune // lines without secrets
	maskedWith int            // how many texts were hidden then
}

func newSource(name, text string) *source {
	s := &source{name: name}
	for line := range strings.SplitSeq(text, "\n") {
		s.lines = append(s.lines, []rune(strings.TrimSuffix(line, "\r")))
	}
	return s
}

// line is a line's characters, by its number; nil outside the file.
func (s *source) line(number int) []rune {
	if number < 1 || number > len(s.lines) {
		return nil
	}
	return s.lines[number-1]
}

// rest is the line from column on; nil outside the file.
func (s *source) rest(line, column int) []rune {
	if text := s.line(line); column >= 1 && column <= len(text) {
		return text[column-1:]
	}
	return nil
}

// problem makes a Problem of a place, moved into the file if it is outside (a parser may point behind the last line).
// Its snippet comes later, when it is known to be among those that are shown.
func (s *source) problem(at place, code, message string) Problem {
	line := min(max(at.line, 1), max(len(s.lines), 1))
	column := min(max(at.column, 1), len(s.line(line))+1)
	length := min(max(at.length, 1), max(len(s.rest(line, column)), 1))
	return Problem{File: s.name, Line: line, Column: column, Length: length, Message: oneLine(message), Code: code}
}

const (
	maxSnippet = 120 // how many characters of a line a snippet shows
	maxURL     = 400 // how far before them a URL with a password may begin
)

// snippet is the line and, under it, a caret at the column with a tilde for each further character.
func (s *source) snippet(number, column, length int) string {
	all := s.line(number)
	if len(all) == 0 {
		return ""
	}
	start := 0
	if column > maxSnippet*3/4 { // a long line: show the part around the column
		start = column - maxSnippet/2
	}
	end := min(len(all), start+maxSnippet)
	shown := s.shown(number, start, end)

	var text, carets strings.Builder
	for i, r := range shown {
		text.WriteRune(printable(r))
		if start+i < column-1 {
			carets.WriteString(blank(r))
		}
	}
	carets.WriteByte('^')
	second := min(column-start, len(shown))
	for _, r := range shown[second:max(second, min(column-1+length-start, len(shown)))] {
		carets.WriteString(strings.Repeat("~", width(r)))
	}
	return fmt.Sprintf("%5d | %s\n      | %s", number, text.String(), carets.String())
}

// shown is a part of a line without what must not be in a report.
func (s *source) shown(number, start, end int) []rune {
	all := s.line(number)
	margin := max(0, start-maxURL)
	part := s.mask(number)[margin:min(len(all), end+maxURL)]
	return maskSecrets(s.looks(number, part, margin > 0))[start-margin : end-margin]
}

// apiToken is one that was written where its hash belongs.
var apiToken = regexp.MustCompile(`\bcl_[a-z0-9-]{1,32}_[A-Za-z0-9_-]+`)

// maskSecrets hides what must not be in a report. The length stays, for the columns.
func maskSecrets(line []rune) []rune {
	return []rune(apiToken.ReplaceAllStringFunc(string(maskPasswords(line)), func(token string) string {
		return "cl_" + strings.Repeat("*", len(token)-len("cl_"))
	}))
}

var urlPassword = regexp.MustCompile(`://[^\s:@/]*:[^\s"'@]+(@[^\s"'@]*)*@`)

// maskPasswords hides the password of a URL: reports end up in logs of CI systems. The length stays, for the columns.
func maskPasswords(line []rune) []rune {
	return []rune(urlPassword.ReplaceAllStringFunc(string(line), func(url string) string {
		password := 3 + strings.IndexByte(url[3:], ':') + 1
		return url[:password] + strings.Repeat("*", utf8.RuneCountInString(url[password:len(url)-1])) + "@"
	}))
}

// oneLine keeps a message on its line and harmless on a terminal.
func oneLine(message string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return printable(r)
	}, message)
}

// printable replaces what would act on a terminal instead of being shown.
func printable(r rune) rune {
	if r != '\t' && !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
}

// blank is as wide as r on a terminal.
func blank(r rune) string {
	if r == '\t' {
		return "\t"
	}
	return strings.Repeat(" ", width(r))
}

// width is how many terminal cells r takes: close enough to put a caret under the right character.
func width(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0x1F300 && r <= 0x1FAFF:
		return 2
	default:
		return 1
	}
}
