package jobs

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// OwnDatabase is the name of the database that has the locks.
const OwnDatabase = "own"

// SQL is a transaction that a job runs instead of a command. The URL may hold a password: a value of this type prints as
// nothing but the name of the database.
type SQL struct {
	Database   string   // a name of the configuration's databases, or OwnDatabase
	URL        string   // of that database; "" for OwnDatabase
	Statements []string // one each, without the semicolon; tokens are replaced by literals
}

// Format prints the name of the database alone.
func (s SQL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "sql{"+s.Database+" ***}") }

// MarshalText is Format, for JSON and logs.
func (s SQL) MarshalText() ([]byte, error) { return fmt.Append(nil, s), nil }

// SQLStatements are the statements of the attempt. What replaces a token is a literal, quotes included: whatever a name
// is made of, it stays one value.
func (a *Attempt) SQLStatements() ([]string, error) {
	if _, err := a.Params(); err != nil {
		return nil, err
	}
	values := a.Values()
	list := make([]string, len(a.Job.SQL.Statements))
	for i, text := range a.Job.SQL.Statements {
		expanded, err := expandArg(text, values.inSQL)
		if err != nil {
			return nil, fmt.Errorf("expand statement %d: %w", i+1, err)
		}
		list[i] = expanded
	}
	return list, nil
}

func (v Values) inSQL(token string) (value, fault string) {
	value, fault = v.lookUp(token)
	if fault == "" && token != tokenBraces {
		value = sqlLiteral(value)
	}
	return value, fault
}

// sqlLiteral is the text as a literal of both databases. A backslash is none for SQLite and for PostgreSQL as it is
// usually set (standard_conforming_strings), which package database insists on for its own statements as well.
func sqlLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// SQLError says which part of a text is not understood, or not for a job.
type SQLError struct {
	Message string // a sentence without a position
	Offset  int    // where the fault begins, in bytes
	Length  int    // how long it is, in bytes
}

func (e *SQLError) Error() string { return e.Message }

// SplitSQL takes a text apart at its semicolons. The error is a *TokenError (an unknown token, one inside quotes) or a
// *SQLError: a quote that is not closed, a statement that would end the transaction, nothing at all. The parts are not understood any further; the
// server refuses one that is more than a statement.
func SplitSQL(text string, t Tokens) ([]string, error) {
	if err := CheckArg(text, t); err != nil {
		return nil, err
	}
	var list []string
	begin, start, first := 0, -1, "" // start is where the statement's first word begins
	flush := func(end int) error {
		if start >= 0 {
			if transactionWords[first] {
				return &SQLError{
					Message: strings.ToUpper(first) + " is not for a job: all of its statements are one transaction, which is committed when all have succeeded",
					Offset:  start, Length: len(first),
				}
			}
			list = append(list, strings.TrimSpace(text[begin:end]))
		}
		begin, start, first = end+1, -1, ""
		return nil
	}
	for i := 0; i < len(text); {
		p := sqlPieceAt(text, i)
		switch {
		case p.open:
			return nil, &SQLError{Message: p.kind + " is not closed", Offset: i, Length: len(text) - i}
		case p.kind != "":
			if err := tokenInside(text, i, p); err != nil {
				return nil, err
			}
			if start < 0 && !p.blank {
				start = i
			}
		case text[i] == ';':
			if err := flush(i); err != nil {
				return nil, err
			}
		case start < 0 && !p.blank:
			start, first = i, wordAt(text[i:])
		}
		i = p.end
	}
	if err := flush(len(text)); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, &SQLError{Message: "there is no statement", Length: len(text)}
	}
	return list, nil
}

// tokenInside refuses a token in a piece in which its quotes would end others, or mean nothing. Braces are fine.
func tokenInside(text string, i int, p sqlPiece) error {
	_, err := expandArg(text[i:p.end], func(token string) (string, string) {
		if token == tokenBraces {
			return "", ""
		}
		return "", "a token in " + p.kind + ": it is replaced by a text in quotes of its own; write 'a-' || {{ .Period }}"
	})
	var fault *TokenError
	if errors.As(err, &fault) {
		fault.Offset += i
	}
	return err
}

// transactionWords begin statements that end a transaction, or cannot be in one.
//
//nolint:gochecknoglobals // a closed list
var transactionWords = map[string]bool{
	"begin": true, "start": true, "commit": true, "end": true, "rollback": true, "abort": true, "prepare": true,
	"attach": true, "detach": true, "pragma": true, "vacuum": true,
}

func wordAt(text string) string {
	end := 0
	for end < len(text) && isLetter(text[end]) {
		end++
	}
	return strings.ToLower(text[:end])
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
