package database

import (
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
)

// refusedText stands in a statement where a text could not: bun writes arguments into the statement itself and would
// put a replacement character for invalid UTF-8 there. The guard refuses every statement with a NUL, so this one is
// never sent and the caller gets ErrText.
const refusedText = "\x00"

type postgresDialect struct{ *pgdialect.Dialect }

// AppendString refuses what cannot be stored as it is.
func (d postgresDialect) AppendString(b []byte, s string) []byte {
	if !cleanText(s) {
		return append(b, refusedText...)
	}
	return d.Dialect.AppendString(b, s)
}

// AppendJSON refuses what cannot be stored as it is.
func (d postgresDialect) AppendJSON(b, json []byte) []byte {
	if !cleanText(string(json)) {
		return append(b, refusedText...)
	}
	return d.Dialect.AppendJSON(b, json)
}

type sqliteDialect struct{ *sqlitedialect.Dialect }

// AppendString refuses what cannot be stored as it is.
func (d sqliteDialect) AppendString(b []byte, s string) []byte {
	if !cleanText(s) {
		return append(b, refusedText...)
	}
	return d.Dialect.AppendString(b, s)
}

// AppendJSON refuses what cannot be stored as it is.
func (d sqliteDialect) AppendJSON(b, json []byte) []byte {
	if !cleanText(string(json)) {
		return append(b, refusedText...)
	}
	return d.Dialect.AppendJSON(b, json)
}
