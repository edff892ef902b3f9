package importer

import (
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// crontabLine is what one line says. At most one of setting and entry is set; a line with neither is a fault, or says nothing.
type crontabLine struct {
	number  int
	text    string // without the blanks around it
	setting *variable
	entry   *crontabEntry
	above   []string // the comments right above an entry
	fault   string
}

// crontabEntry is a line that runs something.
type crontabEntry struct {
	fields []string // five, or one such as @daily
	rest   string   // behind them
	quiet  bool     // cronie's "-" in front: not logged
}

const cronName = `[A-Za-z_][A-Za-z0-9_]*`

var (
	cronSetting   = regexp.MustCompile(`^(` + cronName + `|"` + cronName + `"|'` + cronName + `')[ \t]*=[ \t]*(.*)$`)
	cronDiagram   = regexp.MustCompile(`(?i)\*\s+\*\s+\*|\bdow\b|day of (the )?month|minute \(|user-?name|\bmday\b|^#[#\s.|\-=*]*$`)
	cronUserWords = regexp.MustCompile(`(?i)\b(user|user-?name|who)[ \t]+command\b`)
	cronUser      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*\$?([:/][A-Za-z0-9_.:/-]+)?$`)
)

// readCrontab reads the lines that say something.
func readCrontab(data []byte) []crontabLine {
	var lines []crontabLine
	var above []string
	number := 0
	for raw := range strings.SplitSeq(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
		number++
		text := strings.Trim(strings.TrimSuffix(raw, "\r"), " \t")
		switch {
		case text == "":
			above = nil
		case text[0] == '#':
			above = append(above, strings.TrimSpace(strings.TrimLeft(text, "#")))
			if cronDiagram.MatchString(text) {
				lines = append(lines, crontabLine{number: number, text: text})
			}
		default:
			line := readCrontabLine(text)
			line.number, line.text = number, text
			if line.entry != nil {
				line.above = usefulComments(above)
			}
			lines, above = append(lines, line), nil
		}
	}
	return lines
}

// usefulComments is nothing for the head of a crontab, which explains its fields, and for essays.
func usefulComments(comments []string) []string {
	const most = 12
	for _, c := range comments {
		if cronDiagram.MatchString("#" + c) {
			return nil
		}
	}
	if len(comments) > most {
		return nil
	}
	return comments
}

func readCrontabLine(text string) crontabLine {
	if !utf8.ValidString(text) {
		return crontabLine{fault: "the line is not UTF-8; convert the file first (iconv)"}
	}
	if strings.ContainsRune(text, 0) {
		return crontabLine{fault: "the line holds a NUL character"}
	}
	if m := cronSetting.FindStringSubmatch(text); m != nil {
		return crontabLine{setting: &variable{strings.Trim(m[1], `"'`), unquoted(m[2])}}
	}
	entry := &crontabEntry{}
	rest, quiet := strings.CutPrefix(text, "-")
	entry.quiet = quiet
	count := 5
	if strings.HasPrefix(rest, "@") {
		count = 1
	}
	for range count {
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			return crontabLine{fault: `this is neither NAME=value nor five fields (minute, hour, day of month, month, day of week) and a command`}
		}
		entry.fields = append(entry.fields, rest[:end])
		rest = strings.TrimLeft(rest[end:], " \t")
	}
	entry.rest = rest
	return crontabLine{entry: entry}
}

// unquoted takes away one pair of quotes around a whole value.
func unquoted(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	return value
}

// namesSystemCrontab tells /etc/crontab and the files of cron.d from those of users.
func namesSystemCrontab(name string) bool {
	name = filepath.ToSlash(name)
	return strings.HasSuffix("/"+name, "/etc/crontab") || strings.Contains("/"+name, "/cron.d/")
}

// looksLikeSystemCrontab is true when the head of the fields has a column for users, or an entry begins with root and
// all others with what may be a user.
func looksLikeSystemCrontab(lines []crontabLine) bool {
	users, root := true, false
	for _, line := range lines {
		if line.entry == nil {
			if strings.HasPrefix(line.text, "#") && cronUserWords.MatchString(line.text) {
				return true
			}
			continue
		}
		user, command := line.entry.splitUser()
		users = users && command != "" && cronUser.MatchString(user)
		root = root || user == "root"
	}
	return users && root
}

// splitUser reads the column of /etc/crontab.
func (e *crontabEntry) splitUser() (user, command string) {
	end := strings.IndexAny(e.rest, " \t")
	if end < 0 {
		return e.rest, ""
	}
	return e.rest[:end], strings.TrimLeft(e.rest[end:], " \t")
}
