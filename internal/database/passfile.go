package database

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fillSecrets gives each host its password: the URL's or PGPASSWORD, else the host's line of the password file.
func (p pgTarget) fillSecrets(v params) error {
	if password := v.get("password"); password != "" {
		for i := range p.hosts {
			p.hosts[i].password = NewPassword(password)
		}
		return nil
	}
	lines, err := readPassfile(v)
	if err != nil {
		return err
	}
	for i, h := range p.hosts {
		p.hosts[i].password = NewPassword(lines.find(h, p.database, p.user))
	}
	return nil
}

// readPassfile reads PGPASSFILE, else ~/.pgpass if there is one.
func readPassfile(v params) (passLines, error) {
	path, named := v.get("passfile"), true
	if path == "" {
		home := v.getenv("HOME")
		if home == "" {
			return nil, nil
		}
		path, named = filepath.Join(home, ".pgpass"), false
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the password file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the password file %s can be read by others (mode %04o): chmod 600 %[1]s", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the password file: %w", err)
	}
	return parsePassfile(string(text)), nil
}

// passLines are the lines of a password file: host, port, database, user, password.
type passLines [][5]string

// parsePassfile reads libpq's format: five fields between colons, \ before a literal : or \, # begins a comment line.
// Lines of another form are ignored, as libpq does.
func parsePassfile(text string) passLines {
	var lines passLines
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if fields := splitPassLine(line); len(fields) == 5 {
			lines = append(lines, [5]string(fields))
		}
	}
	return lines
}

func splitPassLine(line string) []string {
	var fields []string
	var field strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			field.WriteByte(line[i])
		case c == ':' && len(fields) < 4:
			fields = append(fields, field.String())
			field.Reset()
		default:
			field.WriteByte(c)
		}
	}
	return append(fields, field.String())
}

// find returns the password of the first line that fits. A Unix socket is looked up as localhost too, as in libpq.
func (lines passLines) find(h host, database, user string) string {
	for _, l := range lines {
		hostFits := l[0] == "*" || l[0] == h.name || (h.unix() && l[0] == "localhost")
		if hostFits && fits(l[1], h.port) && fits(l[2], database) && fits(l[3], user) {
			return l[4]
		}
	}
	return ""
}

func fits(pattern, value string) bool { return pattern == "*" || pattern == value }
