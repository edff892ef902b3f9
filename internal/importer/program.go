package importer

import (
	"regexp"
	"strings"
)

// programOf is the simple command that a shell text is about, with what only surrounds it taken away: changes of folder,
// tests, variables, and programs such as nice that run another one.
func programOf(text string, depth int) []string {
	const deepest = 4
	if depth > deepest {
		return nil
	}
	var fallback []string
	for _, command := range simpleCommands(text) {
		words := unwrap(command, depth)
		if len(words) == 0 {
			continue
		}
		if !surrounds(words[0]) {
			return words
		}
		if fallback == nil {
			fallback = words
		}
	}
	return fallback
}

// surrounds says that a command prepares another one.
func surrounds(program string) bool {
	switch program {
	case "cd", "test", "[", "[[", "export", "set", "umask", "source", ".", "sleep", "true", ":", "exit", "ulimit", "trap", "unset", "command":
		return true
	}
	return false
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// wrapper is a program that runs another one.
type wrapper struct {
	values     string // its one-letter options that have a value of their own
	positional int    // how many arguments come before the program
}

func wrappers(program string) (wrapper, bool) {
	w, ok := map[string]wrapper{
		"nice": {values: "n"}, "ionice": {values: "cnp"}, "sudo": {values: "ughp"}, "doas": {values: "u"},
		"env": {values: "uC"}, "time": {},
		"timeout": {values: "ks", positional: 1}, "nohup": {}, "flock": {values: "wE", positional: 1}, "setlock": {positional: 1},
		"chronic": {}, "cronic": {}, "setsid": {}, "exec": {}, "systemd-cat": {values: "tp"}, "stdbuf": {values: "ioe"},
		"lockf": {values: "t", positional: 1},
		"sh":    {}, "bash": {}, "dash": {}, "zsh": {}, "ksh": {}, "ash": {},
		"if": {}, "then": {}, "else": {}, "do": {}, "while": {}, "!": {}, "{": {}, "}": {},
		"python": {}, "python2": {}, "python3": {}, "perl": {}, "php": {values: "cd"}, "ruby": {}, "node": {}, "java": {values: "cp"},
	}[program]
	return w, ok
}

// unwrap takes away assignments and wrappers in front of a command.
func unwrap(words []string, depth int) []string {
	for len(words) > 0 {
		if assignment.MatchString(words[0]) {
			words = words[1:]
			continue
		}
		w, ok := wrappers(base(words[0]))
		if !ok {
			return words
		}
		rest, inner := w.skip(words[1:])
		if inner != "" {
			return programOf(inner, depth+1)
		}
		if len(rest) == 0 {
			return words[:1]
		}
		words = rest
	}
	return nil
}

// skip passes a wrapper's options and arguments; inner is a whole shell text that an option -c has.
func (w wrapper) skip(words []string) (rest []string, inner string) {
	positional := w.positional
	for len(words) > 0 {
		word := words[0]
		switch {
		case !strings.HasPrefix(word, "-") && positional == 0:
			return words, ""
		case !strings.HasPrefix(word, "-"):
			positional--
		case word == "-m" && len(words) > 1: // python -m module
			return words[1:], ""
		case strings.HasSuffix(word, "c") && !strings.HasPrefix(word, "--") && !strings.Contains(w.values, "c") && len(words) > 1:
			return nil, words[1]
		case len(word) == 2 && strings.Contains(w.values, word[1:]) && len(words) > 1:
			words = words[1:]
		}
		words = words[1:]
	}
	return nil, ""
}

// simpleCommands splits a shell text at operators into commands, and these into words without quotes. It is made for
// finding a name, not for running anything.
func simpleCommands(text string) [][]string {
	s := &shellText{}
	for _, r := range text {
		s.next(r)
	}
	s.endCommand()
	return s.commands
}

type shellText struct {
	commands [][]string
	words    []string
	word     strings.Builder
	inWord   bool
	quote    rune // the open one, or '\\'; 0 outside
	redirect bool // the next word is the target of a redirection
	comment  bool // until the end of the line
}

func (s *shellText) next(r rune) {
	switch {
	case s.comment && r != '\n':
	case r == '#' && s.quote == 0 && !s.inWord:
		s.comment = true
	case s.quote == '\\':
		s.put(r)
		s.quote = 0
	case s.quote != 0 && r == s.quote:
		s.quote = 0
	case s.quote != 0:
		s.put(r)
	case r == '\'' || r == '"' || r == '\\':
		s.quote, s.inWord = r, true
	case r == '`':
		s.quote, s.inWord = r, true
		s.word.WriteByte('$') // what comes out of it is not known
	case r == '(' && strings.HasSuffix(s.word.String(), "$"):
		s.quote = ')'
	case r == ' ' || r == '\t':
		s.endWord()
	case r == '<' || r == '>':
		if digits(s.word.String()) {
			s.word.Reset()
			s.inWord = false
		}
		s.endWord()
		s.redirect = true
	case r == '&' && s.redirect && !s.inWord: // 2>&1
	case strings.ContainsRune("&|;()\n", r):
		s.endCommand()
	default:
		s.put(r)
	}
}

func digits(text string) bool { return strings.Trim(text, "0123456789") == "" }

func (s *shellText) put(r rune) {
	s.word.WriteRune(r)
	s.inWord = true
}

func (s *shellText) endWord() {
	if !s.inWord {
		return
	}
	if !s.redirect {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord, s.redirect = false, false
}

func (s *shellText) endCommand() {
	s.endWord()
	s.redirect, s.comment = false, false
	if len(s.words) > 0 {
		s.commands = append(s.commands, s.words)
	}
	s.words = nil
}
