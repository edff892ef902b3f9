package configs

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
)

// hiddenText is a part of some lines that no snippet shows.
type hiddenText struct {
	text string
	at   place // where it begins
	last int   // line
}

// shortestHidden is how long a secret must be to be hidden wherever its line has it.
const shortestHidden = 6

// mask hides the values of secrets in a line: those that were read as such, and what looks like one where the file could
// not be read, or has a key that nobody knows. The length stays, for the columns.
func (s *source) mask(number int, line []rune) []rune {
	text := string(line)
	for _, h := range s.hidden {
		if number < h.at.line || number > h.last {
			continue
		}
		if len(h.text) >= shortestHidden && strings.Contains(text, h.text) {
			text = strings.ReplaceAll(text, h.text, stars(h.text))
		} else if number == h.at.line { // a short one may be a part of anything, and one with escapes is written in another way
			text = starsAt([]rune(text), h.at)
		}
	}
	switch from := secretKey.FindStringIndex(text); {
	case from != nil && s.broken:
		text = text[:from[1]] + stars(text[from[1]:])
	case from != nil:
		text = text[:from[1]] + maskValues(text[from[1]:])
	case s.inSecrets(number) && s.broken:
		_, value, _ := strings.Cut(text, ":")
		if value == "" {
			value = text
		}
		text = strings.TrimSuffix(text, value) + stars(value)
	case s.inSecrets(number):
		key := firstKey.FindString(text)
		text = key + maskValues(text[len(key):])
	}
	return []rune(text)
}

// secretKey is the end of a key whose values are secrets; what comes before it in its line is not.
var secretKey = regexp.MustCompile(`(?i)(secrets?|password)[^\s\w:]?["']?[^\s\w:]?\s*:[^\s\w"']?`)

// firstKey is the key at the beginning of a line.
var firstKey = regexp.MustCompile(`^\s*("[^"]*"|'[^']*'|[^\s"':]+)\s*:`)

// secretValue is a value of a flow map, or one behind its key, unless it begins with a variable.
var secretValue = regexp.MustCompile(`(^\s*|:\s+)("([^"$]|\$[^{])[^"]*"?|'([^'$]|\$[^{])[^']*'?|([^\s"'{}$#,]|\$[^{])[^,}#]*)`)

func maskValues(text string) string {
	return secretValue.ReplaceAllStringFunc(text, func(match string) string {
		value := strings.TrimLeftFunc(strings.TrimPrefix(strings.TrimSpace(match), ":"), unicode.IsSpace)
		if strings.HasSuffix(value, ":") { // it is a key
			return match
		}
		at := strings.LastIndex(match, value)
		return match[:at] + stars(value) + match[at+len(value):]
	})
}

// starsAt hides a place of a line.
func starsAt(line []rune, at place) string {
	for i := max(at.column-1, 0); i < min(at.column-1+at.length, len(line)); i++ {
		line[i] = '*'
	}
	return string(line)
}

func stars(text string) string { return string(bytes.Repeat([]byte("*"), len([]rune(text)))) }

// inSecrets reports whether a line is below a line that says secrets:, by its indentation. A file that cannot be read has
// nothing better to go by.
func (s *source) inSecrets(number int) bool {
	own := indent(s.line(number))
	for above := number - 1; above >= 1 && (own > 0 || s.broken); above-- {
		line := s.line(above)
		text := strings.TrimSpace(string(line))
		if text == "" || indent(line) >= own && !s.broken { // of a broken file, the indentation may be what is wrong
			continue
		}
		if blockOfSecrets.MatchString(text) {
			return true
		}
		own = indent(line)
	}
	return false
}

var blockOfSecrets = regexp.MustCompile(`(?i)secrets?[^\s\w]{0,2}\s*:[^\w]{0,2}\s*(#.*)?$`)

func indent(line []rune) int {
	for i, r := range line {
		if r != ' ' {
			return i
		}
	}
	return len(line)
}
