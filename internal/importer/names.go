package importer

import (
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// names gives each job a name of its own, in the order of the source: what is appended later changes no earlier name.
// The value is the number that was tried last behind the name.
type names map[string]int

const longestName = 48

// take is the first candidate that is free, or the first one with a number.
func (n names) take(candidates []string) string {
	for _, candidate := range candidates {
		if _, taken := n[candidate]; !taken {
			n[candidate] = 1
			return candidate
		}
	}
	for i := n[candidates[0]] + 1; ; i++ {
		name := candidates[0] + "-" + strconv.Itoa(i)
		if _, taken := n[name]; !taken {
			n[candidates[0]], n[name] = i, 1
			return name
		}
	}
}

// commandNames are names for a shell text: the program with one, two and three of its arguments.
func commandNames(text string) []string {
	words := programOf(text, 0)
	if len(words) == 0 {
		return []string{"job"}
	}
	name := slug(stem(words[0]))
	if name == "" {
		name = "job"
	}
	var candidates []string
	for _, argument := range arguments(words[1:], 3) {
		if longer := shorten(name + "-" + argument); longer != name {
			name = longer
			candidates = append(candidates, name)
		}
	}
	if len(candidates) == 0 {
		return []string{shorten(name)}
	}
	return candidates
}

// arguments that name what a program works on. A word behind an option may be its value, a password even, and then only
// a path or an address counts; and of an address the host.
func arguments(words []string, most int) []string {
	var found []string
	behind := false
	for _, word := range words {
		value := behind
		if behind = mayHaveSecret(word); strings.HasPrefix(word, "-") {
			continue
		}
		if address, err := url.Parse(word); err == nil && address.Host != "" {
			word, value = address.Hostname(), false
		}
		if strings.ContainsAny(word, "$`=*?") || value && !strings.HasPrefix(word, "/") {
			continue
		}
		if s := slug(stem(word)); s != "" && len(found) < most {
			found = append(found, s)
		}
	}
	return found
}

// mayHaveSecret tells the options by which programs take names and passwords: long ones, and those that end in one of
// the letters that are usual for it.
func mayHaveSecret(option string) bool {
	if !strings.HasPrefix(option, "-") || strings.Contains(option, "=") {
		return false
	}
	last := option[len(option)-1:]
	return strings.HasPrefix(option, "--") || strings.ContainsAny(last, "adehkpstuwxADEHKPSTUWX")
}

// base is the last part of a path, and other words as they are.
func base(word string) string {
	if !strings.Contains(word, "/") {
		return word
	}
	if b := path.Base(word); b != "/" && b != "." {
		return b
	}
	return ""
}

var extension = regexp.MustCompile(`\.(sh|bash|py|pl|rb|php|js|cgi|jar)$`)

// stem is a program without its folder and the ending of its language.
func stem(program string) string { return extension.ReplaceAllString(base(program), "") }

// slug is text in small letters, digits, "_" and single "-".
func slug(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimRight(b.String(), "-")
}

func shorten(name string) string {
	if len(name) > longestName {
		name = name[:longestName]
	}
	return strings.Trim(name, "-")
}
