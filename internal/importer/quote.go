package importer

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// quote is text as a YAML value. Go's escapes are YAML's.
func quote(text string) string { return strconv.Quote(text) }

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// quoteKey leaves out the quotes where no reader of YAML can take the key for anything but text.
func quoteKey(text string) string {
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return quote(text)
	}
	if plainKey.MatchString(text) {
		return text
	}
	return quote(text)
}

// script is shell text as a YAML value: in quotes when it is short and needs no escape, else a block, as a person
// would write it.
func script(text string) string {
	if isShort(text) || !fitsBlock(text) {
		return quote(text)
	}
	if body, ended := strings.CutSuffix(text, "\n"); ended {
		return "|\n" + body
	}
	return "|-\n" + text
}

// isShort is a text that is read well in quotes.
func isShort(text string) bool {
	const longest = 100
	return len(text) <= longest && quote(text) == `"`+text+`"`
}

// fitsBlock is false for what a literal block would change: blanks at the start, lines that end in blanks or are empty
// at either end, and what is not printed.
func fitsBlock(text string) bool {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] == "" || strings.ContainsAny(lines[0][:1], " \t") || lines[len(lines)-1] == "" {
		return false
	}
	for _, line := range lines {
		if strings.TrimRight(line, " \t") != line ||
			strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) {
			return false
		}
	}
	return true
}

// list is a list of texts as a YAML value: on one line when all of them are short.
func list(items []string) string {
	quoted, short := make([]string, len(items)), true
	for i, item := range items {
		quoted[i], short = quote(item), short && isShort(item)
	}
	if short {
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	var b strings.Builder
	for i, item := range items {
		if quoted[i] = script(item); i == 0 {
			quoted[i] = quote(item) // a program's name is no script
		}
		b.WriteString("\n- " + indented(quoted[i], "  "))
	}
	return b.String()
}

// indented puts an indentation in front of every line but the first and empty ones.
func indented(text, indent string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if i > 0 && lines[i] != "" {
			lines[i] = indent + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// literalDollars keeps a text from being searched for variables.
func literalDollars(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// literalBraces keeps an element of a command from being searched for {{ .Period }} and the like.
func literalBraces(text string) string { return strings.ReplaceAll(text, "{{", `{{ "{{" }}`) }
