package importer

import (
	"fmt"
	"slices"
	"strings"
)

// splitPercent divides a command at its first % that has no backslash in front: what follows is the standard input, with
// a newline for each further one. It follows child_process in Vixie cron's do_command.c to the letter.
func splitPercent(text string) (command, stdin string) {
	var b strings.Builder
	escaped := false
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped && c == '%':
			command := b.String()
			b.Reset()
			b.WriteString(command[:len(command)-1] + "%")
			escaped = false
			continue
		case !escaped && c == '%':
			return b.String(), stdinOf(text[i+1:])
		}
		escaped = !escaped && c == '\\'
		b.WriteByte(c)
	}
	return b.String(), ""
}

func stdinOf(text string) string {
	var b strings.Builder
	escaped := false
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped && c != '%':
			b.WriteByte('\\')
		case !escaped && c == '%':
			c = '\n'
		}
		if escaped = c == '\\'; !escaped {
			b.WriteByte(c)
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	if out := b.String(); out == "" || strings.HasSuffix(out, "\n") {
		return out
	}
	return b.String() + "\n"
}

// withStdin gives a command its standard input as a here-document. The braces keep it from going to the last command of
// a list only.
func withStdin(command, stdin string) string {
	if stdin == "" {
		return command
	}
	if trailing := len(command) - len(strings.TrimRight(command, `\`)); trailing%2 == 1 {
		command += `\` // the one at the end stood for itself; now it would join the next line
	}
	lines := strings.Split(stdin, "\n")
	end := "END"
	for i := 2; slices.Contains(lines, end); i++ {
		end = fmt.Sprintf("END%d", i)
	}
	return "{ " + command + "\n} <<'" + end + "'\n" + stdin + end
}

// cronFlags takes away the flags that some BSDs allow in front of a command.
func cronFlags(command string) (rest, flags string) {
	for {
		word, after, found := strings.Cut(command, " ")
		if !found || len(word) < 2 || word[0] != '-' || strings.Trim(word[1:], "nqs") != "" {
			return command, flags
		}
		flags += word[1:]
		command = strings.TrimLeft(after, " \t")
	}
}
