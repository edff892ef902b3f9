package configs

import (
	"errors"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cronlatch/cronlatch/jobs"
)

// sqlDraft is a transaction as it is read.
type sqlDraft struct {
	database, statement, file string
	at                        present
}

const (
	sqlShape      = `{database: own, statement: "DELETE FROM sessions WHERE expires_at < now()"}`
	databaseShape = `{warehouse: {url: "postgres://jobs@db/warehouse"}}`
	maxSQLFile    = 1 << 20
)

func sqlFields() []field[sqlDraft] {
	return []field[sqlDraft]{
		{
			key: "database", initial: jobs.OwnDatabase, doc: "A name in databases; own is the database that has the locks.",
			bind: func(d *sqlDraft) sink { return text{into: &d.database} },
		},
		{
			key: "statement", doc: "The statements, with semicolons between them; one transaction. Tokens are replaced by texts in quotes, and nothing else is replaced.",
			bind: func(d *sqlDraft) sink { return text{into: &d.statement, raw: true} },
		},
		{
			key: "file", doc: "A file with the statements, in place of statement. It is read when the configuration is.",
			bind: func(d *sqlDraft) sink { return text{into: &d.file} },
		},
	}
}

// sqlGroup is a group that remembers where its keys are.
type sqlGroup struct{ into *sqlDraft }

func (s sqlGroup) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, "%s must be a map such as %s, not %s", name, sqlShape, n.describe())
		return
	}
	s.into.at = table[sqlDraft]{fields: sqlFields(), where: " in " + name, prefix: name + "."}.read(r, n, s.into)
}

func (s sqlGroup) walk(prefix string, visit func(leaf)) { walk(sqlFields(), s.into, prefix, visit) }

func targetFields() []field[daemonDraft] {
	return []field[daemonDraft]{{
		key: "databases", doc: "Databases of sql jobs, by name: `{warehouse: {url: \"postgres://jobs@db/warehouse\"}}`.",
		bind: func(d *daemonDraft) sink { return databaseMap{&d.databases} },
	}}
}

func targetDatabaseFields() []field[Database] {
	return []field[Database]{{
		key: "url", required: true, doc: "postgres://user@host/name or sqlite:path.",
		bind: func(d *Database) sink { return text{into: &d.URL, check: checkDatabaseURL, like: databaseURLPattern} },
	}}
}

// databaseMap is a sink for databases by name.
type databaseMap struct{ into *map[string]Database }

func (databaseMap) empty() string { return "{}" }

var databaseName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

func (s databaseMap) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, "%s must be a map such as %s, not %s", name, databaseShape, n.describe())
		return
	}
	all := make(map[string]Database, len(n.pairs))
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		switch {
		case p.key.kind != kindText: // reported with the tree
			continue
		case p.key.text == jobs.OwnDatabase:
			r.refuse(p.key, codeConflict, "the name %s is that of the database with the locks; take another one", jobs.OwnDatabase)
			continue
		case !databaseName.MatchString(p.key.text):
			r.refuse(p.key, codeDatabase, "the name of a database must be 1 to 32 letters, digits, _ and -, not %q", abbreviate(p.key.text))
			continue
		}
		var d Database
		group[Database]{targetDatabaseFields(), &d, `{url: "postgres://jobs@db/warehouse"}`}.read(r, p.value, name+"."+p.key.text)
		all[p.key.text] = d
	}
	*s.into = all
}

// sql checks a transaction as a whole and makes it.
func (r *reader) sql(d *jobDraft, tokens jobs.Tokens) *jobs.SQL {
	n := d.at["sql"]
	if n == nil || n.kind != kindMap {
		return nil
	}
	s := &jobs.SQL{Database: d.sql.database, URL: r.databaseURL(&d.sql, n)}
	switch statement, file := d.sql.at["statement"], d.sql.at["file"]; {
	case !d.sql.at.has("statement") && !d.sql.at.has("file"):
		r.refuse(n, codeRequired, "sql has neither statement nor file; give it one of them")
	case statement != nil && file != nil:
		r.refuse(file, codeConflict, "sql has both statement (line %d) and file; remove one of them", statement.at.line)
	case d.sql.statement != "":
		s.Statements = r.statements(d.sql.statement, tokens, func(at part, code, message string) {
			r.refusePart(statement, at, code, message)
		})
	case d.sql.file != "":
		s.Statements = r.sqlFile(file, d.sql.file, tokens)
	}
	return s
}

// databaseURL is the URL of the database of a job.
func (r *reader) databaseURL(d *sqlDraft, n *node) string {
	found, ok := r.databases[d.database]
	if d.database == jobs.OwnDatabase || ok {
		return found.URL
	}
	names := append(slices.Sorted(maps.Keys(r.databases)), jobs.OwnDatabase)
	if at := d.at["database"]; at != nil {
		n = at
	}
	r.refuse(n, codeDatabase, "there is no database %s; databases has %s%s", shown(n), series(names, "and"), didYouMean(n.text, names))
	return ""
}

// statements takes a text apart; a fault in it is given to report.
func (r *reader) statements(text string, tokens jobs.Tokens, report func(at part, code, message string)) []string {
	list, err := jobs.SplitSQL(text, tokens)
	var token *jobs.TokenError
	var fault *jobs.SQLError
	switch {
	case errors.As(err, &token):
		report(part{token.Offset, token.Length}, codeTemplate, token.Message)
	case errors.As(err, &fault):
		report(part{fault.Offset, fault.Length}, codeSQL, fault.Message)
	}
	return list
}

// sqlFile reads a file of statements. A fault in it is reported where the file is named, with its line.
func (r *reader) sqlFile(n *node, path string, tokens jobs.Tokens) []string {
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(r.vars.dir, full)
	}
	data, err := r.vars.read(full)
	switch {
	case err != nil:
		r.refuse(n, codeFile, "the file %s cannot be read: %s", shown(n), reason(err))
		return nil
	case len(data) > maxSQLFile:
		r.refuse(n, codeFile, "the file %s has more than %d bytes, too many for the statements of a job", shown(n), maxSQLFile)
		return nil
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		r.refuse(n, codeFile, "the file %s holds something that is not text (a NUL, or not UTF-8)", shown(n))
		return nil
	}
	content := strings.TrimPrefix(string(data), "\ufeff")
	return r.statements(content, tokens, func(at part, code, message string) {
		line := 1 + strings.Count(content[:at.offset], "\n")
		r.refuse(n, code, "the file %s, line %d: %s", shown(n), line, message)
	})
}

// statements is the canonical form of a jobs.SQL, which of itself prints as nothing.
type statements struct {
	Database, URL string
	Statements    []string
}

func statementsOf(s *jobs.SQL) *statements {
	if s == nil {
		return nil
	}
	return &statements{s.Database, s.URL, s.Statements}
}
