package database

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// DefaultFile is the SQLite file beside the configuration when nothing names a database.
const DefaultFile = "cronlatch.db"

// Source is where a database URL may come from, strongest first: URL, DATABASE_URL of the environment, FileURL, and
// the PG* variables of libpq when PGHOST is set. Without any of them it is DefaultFile in Dir.
type Source struct {
	URL     string              // the --database-url flag
	FileURL string              // database.url of the configuration file
	Getenv  func(string) string // nil is an empty environment
	Dir     string              // folder of the configuration file; a relative SQLite path starts there
}

// Resolve is Source.Resolve with the parts as arguments.
func Resolve(flagURL, fileURL string, getenv func(string) string, dir string) (Target, error) {
	return Source{URL: flagURL, FileURL: fileURL, Getenv: getenv, Dir: dir}.Resolve()
}

// Resolve finds the database URL and parses it. The error says which of the places is at fault.
func (s Source) Resolve() (Target, error) {
	getenv := s.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	for _, c := range []struct{ place, url string }{
		{"--database-url", s.URL},
		{"DATABASE_URL", getenv("DATABASE_URL")},
		{"database.url", s.FileURL},
	} {
		if strings.TrimSpace(c.url) == "" {
			continue
		}
		t, err := Parse(c.url, getenv, s.Dir)
		if err != nil {
			return Target{}, fmt.Errorf("%s: %w", c.place, err)
		}
		return t, nil
	}
	if getenv("PGHOST") != "" {
		t, err := Parse("postgres://", getenv, s.Dir)
		if err != nil {
			return Target{}, fmt.Errorf("PGHOST: %w", err)
		}
		return t, nil
	}
	return Parse("sqlite:"+DefaultFile, getenv, s.Dir)
}

// Parse reads postgres://USER:PASSWORD@HOST1:PORT,HOST2/DATABASE?sslmode=... (or postgresql://), or sqlite:PATH. What
// a PostgreSQL URL leaves out comes from the PG* variables, as with psql. A relative SQLite path starts in dir. The
// error never repeats a password, even when the URL is so wrong that a password stands in another place.
func Parse(raw string, getenv func(string) string, dir string) (Target, error) {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	raw = strings.TrimSpace(raw)
	scheme, rest, ok := strings.Cut(raw, ":")
	switch {
	case !ok:
		return Target{}, errScheme
	case scheme == "sqlite":
		return parseSQLite(rest, dir)
	case scheme == "postgres" || scheme == "postgresql":
		rest, ok = strings.CutPrefix(rest, "//")
		if !ok {
			return Target{}, errors.New("a PostgreSQL URL begins with " + scheme + "://")
		}
		return parsePostgres(rest, getenv)
	case strings.HasPrefix(rest, "//") && isWord(scheme):
		return Target{}, fmt.Errorf("%q is not a database that cronlatch runs on: %w", scheme, errScheme)
	default:
		return Target{}, errScheme
	}
}

var errScheme = errors.New("a database URL is postgres://USER:PASSWORD@HOST/DATABASE or sqlite:PATH")

func parseSQLite(path, dir string) (Target, error) {
	path = strings.TrimPrefix(path, "//")
	switch {
	case path == "":
		return Target{}, errors.New("sqlite: the path of the file is missing (sqlite:cronlatch.db)")
	case strings.Contains(path, ":memory:") || strings.HasPrefix(path, "file:"):
		return Target{}, errors.New("sqlite: the database must be a file (sqlite:cronlatch.db): one in memory " +
			"dies with its connection and cannot be shared between replicas")
	case strings.ContainsAny(path, "?\x00"):
		return Target{}, errors.New("sqlite: the path takes no parameters, no ? and no NUL")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return Target{Kind: SQLite, Path: filepath.Clean(path)}, nil
}

// isWord reports whether s is a plain lower-case name, which is safe to repeat in an error.
func isWord(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && r != '_' && (r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
