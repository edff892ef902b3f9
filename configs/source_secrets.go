package configs

import (
	"bytes"
	"regexp"
	"slices"
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
// not be read, or has a key that nobody knows. The length stays, for the columns. A line is masked once for all problems
// that it has: a megabyte in one line may have thousands of both.
func (s *source) mask(number int) []rune {
	if len(s.hidden) != s.maskedWith {
		s.masked, s.maskedWith = nil, len(s.hidden)
	}
	if line, ok := s.masked[number]; ok {
		return line
	}
	line := []rune(s.maskLooks(number, s.maskHidden(number)))
	if s.masked == nil {
		s.masked = map[int][]rune{}
	}
	s.masked[number] = line
	return line
}

// maskHidden hides what was read as a secret: wherever the line has it, and where it begins. A short one may be a part of
// anything, and one with escapes is written in another way; of them, the place is hidden.
func (s *source) maskHidden(number int) string {
	line := s.line(number)
	var swaps []string
	places := slices.Clone(line)
	for _, h := range s.hidden {
		if number < h.at.line || number > h.last {
			continue
		}
		long := len(h.text) >= shortestHidden
		if long {
			swaps = append(swaps, h.text, stars(h.text))
		}
		if number == h.at.line && (!long || !strings.Contains(string(h.at.of(line)), h.text)) {
			hideRunes(h.at.of(places))
		}
	}
	if len(swaps) == 0 {
		return string(places)
	}
	text := []rune(strings.NewReplacer(swaps...).Replace(string(line)))
	for i, r := range places {
		if r != line[i] {
			text[i] = r
		}
	}
	return string(text)
}

// maskLooks hides what is behind the keys of secrets in a line, or below one.
func (s *source) maskLooks(number int, text string) string {
	switch from := secretKey.FindStringIndex(text); {
	case from != nil && s.broken:
		return text[:from[1]] + stars(text[from[1]:])
	case from != nil:
		return text[:from[1]] + maskValues(text[from[1]:])
	case s.inSecrets(number) && s.broken:
		_, value, _ := strings.Cut(text, ":")
		if value == "" {
			value = text
		}
		return strings.TrimSuffix(text, value) + stars(value)
	case s.inSecrets(number):
		key := firstKey.FindString(text)
		return key + maskValues(text[len(key):])
	default:
		return text
	}
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

// of is the part of a line that a place is.
func (p place) of(line []rune) []rune {
	from := min(max(p.column-1, 0), len(line))
	return line[from:min(from+max(p.length, 0), len(line))]
}

func hideRunes(part []rune) {
	for i := range part {
		part[i] = '*'
	}
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
