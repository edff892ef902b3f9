package configs

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// What looks like a secret is hidden without knowing that it is one: a key that nobody knows may be a misspelled one, and
// of a file that could not be read nothing is known but its text. What a person needs for finding the fault stays:
// keys, brackets and quotes, and the values of keys that cannot hold a secret.

// pairKey is a key in a line, in a block or in braces.
var pairKey = regexp.MustCompile(`("[^"]*"|'[^']*'|[^\s"'{}\[\],:]+)\s*:(?:\s|\*|$)`)

// secretName is a key that says that its value is a secret, whoever's key it is: PGPASSWORD, api_key, Authorization.
var secretName = regexp.MustCompile(`(?i)secre?t|pass(w|$|[_-])|pwd|token|(api|access|private|account)[_-]?key|credential|authori[sz]ation|cookie`)

// secretParts are secrets by how they are written.
var secretParts = regexp.MustCompile(`(?i)(?:[\w-]*(?:secret|passw(?:or)?d|pwd|token|(?:api|access|private|account)[_-]?key)=|\b(?:bearer|basic) )("[^"]*"?|'[^']*'?|[^\s"'&;,]+)`)

// onlyNamed is a value that only says where it is.
var onlyNamed = regexp.MustCompile(`^["']?\$(\{[^}:]*(:\?[^}]*)?\}|\{file:[^}]*\}|[A-Za-z_(]\S*)["']?$`)

// looks hides in a part of a line what looks like a secret. cut says that the line begins before it. The length stays.
func (s *source) looks(number int, part []rune, cut bool) []rune {
	text := string(part)
	keys := pairKey.FindAllStringSubmatchIndex(text, -1)
	var b strings.Builder
	first := len(text)
	if len(keys) > 0 {
		first = keys[0][0]
	}
	hidden := s.unread && (cut || !s.continues(number, text[:first]))
	b.WriteString(hideIf(hidden, text[:first]))
	before, below := text[:first], false // below is in brackets behind a key of secrets
	for i, k := range keys {
		end := len(text)
		if i+1 < len(keys) {
			end = keys[i+1][0]
		}
		key, value := strings.Trim(text[k[2]:k[3]], `"'`), text[k[1]:end]
		if i == 0 || ends(before) {
			hidden = s.secretKey(key, value)
			b.WriteString(text[k[0]:k[1]])
		} else { // it is no key, but goes on with the value before it
			b.WriteString(hideIf(hidden, text[k[0]:k[1]]))
		}
		b.WriteString(hideIf(hidden || below, value))
		below = below || s.unread && slices.Contains(keysOfSecrets, key) && strings.ContainsAny(value, "[{")
		before = value
	}
	return []rune(maskParts(b.String()))
}

// ends reports whether a key can follow a text.
func ends(text string) bool {
	text = strings.TrimRight(text, " \t")
	return text != "" && strings.ContainsAny(text[len(text)-1:], "{[,-?")
}

// secretKey reports whether the value of a key is hidden. Of a file that could not be read these are the values of all keys
// but those that are known and hold no secret.
func (s *source) secretKey(key, value string) bool {
	if !s.unread { // a job may have the name of a secret
		return secretName.MatchString(key) && !slices.Contains(namesOfSecrets, key) && !strings.Contains(value, "{")
	}
	return !knownKeys()[key] || slices.Contains(keysOfSecrets, key)
}

// keysOfSecrets are known keys whose values are secrets, or have some below them that nobody has found yet.
//
//nolint:gochecknoglobals // a closed list
var keysOfSecrets = []string{
	"secrets", "secret", "password", "ping", "url", "headers", "auth", "tokens", "database", "databases", "channels", "webhook", "slack", "env", "tracing",
}

// namesOfSecrets are known keys that look like those of secrets, and say where one is, or that there is one.
//
//nolint:gochecknoglobals // a closed list
var namesOfSecrets = []string{"secrets", "tokens", "token_file"}

// continues reports whether a text without a key of its own is that of a known key: one above it, or its own with the
// colon missing.
func (s *source) continues(number int, text string) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(text, " -"), " ")
	if word == "" || knownKeys()[word] && !slices.Contains(keysOfSecrets, word) {
		return true
	}
	own := indent(s.line(number))
	for above := number - 1; above >= 1; above-- {
		line := s.line(above)
		at := indent(line)
		if at == len(line) || at > own || at == own && !strings.HasPrefix(strings.TrimSpace(text), "-") {
			continue
		}
		k := pairKey.FindStringSubmatch(string(line[:min(len(line), maxURL)]))
		return k != nil && !s.secretKey(strings.Trim(k[1], `"'`), "")
	}
	return false
}

// hideIf hides a value but for its brackets, commas and quotes, unless it only names where it is.
func hideIf(hidden bool, value string) string {
	if !hidden || onlyNamed.MatchString(strings.Trim(value, " \t,{}[]")) {
		return value
	}
	runes := []rune(value)
	for i, r := range runes {
		dash := r == '-' && (i == 0 || runes[i-1] == ' ') && i+1 < len(runes) && runes[i+1] == ' ' // of a list
		if !dash && !strings.ContainsRune(" \t{}[],\"'", r) {
			runes[i] = '*'
		}
	}
	return string(runes)
}

// maskParts hides passwords in addresses' parameters, in variables in front of a command, and in headers.
func maskParts(text string) string {
	var b strings.Builder
	done := 0
	for _, m := range secretParts.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[done:m[2]] + hideIf(true, text[m[2]:m[3]]))
		done = m[3]
	}
	return b.String() + text[done:]
}

// withoutHidden takes out of a problem's message what its snippet hides.
func (s *source) withoutHidden(p Problem) string {
	line := s.line(p.Line)
	from := min(max(p.Column-1, 0), len(line))
	to := min(from+p.Length, len(line), from+maxSnippet)
	if from == to || slices.Equal(s.shown(p.Line, from, to), line[from:to]) {
		return p.Message
	}
	written := strings.Trim(string(line[from:to]), `"' *&!`)
	if len(written) < 3 {
		return p.Message
	}
	return regexp.MustCompile(`(^|["*&! ])`+regexp.QuoteMeta(written)+`($|["*&, ])`).ReplaceAllString(p.Message, "${1}***${2}")
}

// knownKeys are the keys of all maps with fixed keys.
//
//nolint:gochecknoglobals // made once
var knownKeys = sync.OnceValue(func() map[string]bool {
	keys := map[string]bool{}
	tableSchema(daemonFields()).names(keys)
	return keys
})

// names collects the keys of a schema.
func (s *schema) names(keys map[string]bool) {
	if s == nil {
		return
	}
	for key, property := range s.Properties {
		keys[key] = true
		property.names(keys)
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		one.names(keys)
	}
	s.Items.names(keys)
	if values, ok := s.AdditionalProperties.(*schema); ok {
		values.names(keys)
	}
}
