package database

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
)

// Behind a pooler in transaction mode each transaction may run in another server process, and each process serves other
// clients in between. What is set on a session there is lost for us and found by others. So nothing is: every
// transaction brings its settings (SET LOCAL), in the same message as its BEGIN or as its only statement.
//
// How a pooler shows: it answers the startup itself, with a process number of its own invention. A pooler that keeps
// one server process for each client (session mode) is treated in the same way; that costs a little and breaks nothing.

// isolated is what a statement outside a transaction needs, whatever the default of the server, role or database. The
// statements of one message are one transaction (the protocol's implicit one) without any round trip more.
const isolated = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "

// complete is a statement with what it must bring along: nothing inside a transaction, which has begun with it.
func (c *conn) complete(query string) string {
	if c.settings == "" || c.wire.in.status != 'I' {
		return query
	}
	return c.settings + "; " + isolated + query
}

// setupPooled makes the settings of the connection's transactions, and tries them.
func (c *connector) setupPooled(ctx context.Context, conn *conn) error {
	c.pooled()
	settings, err := c.transactionSettings()
	if err != nil {
		return fmt.Errorf("setting up the session: %w", err)
	}
	conn.settings = settings + "; SET LOCAL client_connection_check_interval = " + c.checkInterval()
	err = conn.Ping(ctx)
	if err != nil && SQLState(err) != "" && conn.wire.usable() {
		conn.settings = settings // the server cannot check: before 14, or not on its platform
		err = conn.Ping(ctx)
	}
	if err != nil {
		return fmt.Errorf("setting up the session: %w", err)
	}
	return nil
}

// transactionSettings are those of setupSQL. DEFAULT is the value that the role, the database or the server has: what
// another client left on the session must not decide where our tables are, or whether a commit is durable.
func (c *connector) transactionSettings() (string, error) {
	path, err := searchPath(c.target.searchPath)
	if err != nil {
		return "", err
	}
	return strings.Join([]string{
		"SET LOCAL statement_timeout = " + c.statementTimeout(),
		"SET LOCAL lock_timeout = " + c.lockTimeout(),
		"SET LOCAL idle_in_transaction_session_timeout = " + c.idleTimeout(),
		"SET LOCAL DateStyle = ISO",
		"SET LOCAL jit = off",
		"SET LOCAL enable_bitmapscan = off",
		"SET LOCAL synchronous_commit = DEFAULT",
		"SET LOCAL search_path = " + path,
	}, "; "), nil
}

// searchPath turns the list of the URL, which set_config takes as it is, into the list that SET takes.
func searchPath(list string) (string, error) {
	if strings.TrimSpace(list) == "" {
		return "DEFAULT", nil
	}
	names, err := splitNames(list)
	if err != nil {
		return "", err
	}
	for i, name := range names {
		names[i] = quoteName(name)
	}
	return strings.Join(names, ", "), nil
}

// splitNames reads a list of names as the server does (SplitIdentifierString): separated by commas, in lower case unless
// they stand in double quotes.
func splitNames(list string) (names []string, err error) {
	invalid := fmt.Errorf("the search_path of the URL, %q, is not a list of names", list)
	for rest := strings.TrimSpace(list); ; {
		var name string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			name, rest, ok = cutQuoted(quoted)
			if !ok {
				return nil, invalid
			}
		} else {
			end := strings.IndexAny(rest, ", \t\r\n\"")
			if end < 0 {
				end = len(rest)
			}
			name, rest = strings.Map(lower, rest[:end]), rest[end:]
			if name == "" {
				return nil, invalid
			}
		}
		names = append(names, name)
		rest = strings.TrimSpace(rest)
		if rest == "" {
			return names, nil
		}
		next, ok := strings.CutPrefix(rest, ",")
		if !ok {
			return nil, invalid
		}
		rest = strings.TrimSpace(next)
	}
}

// lower leaves letters beyond ASCII alone, as the server does in UTF-8.
func lower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// cutQuoted reads a name up to its closing quote; two quotes inside are one.
func cutQuoted(s string) (name, rest string, ok bool) {
	for {
		before, after, found := strings.Cut(s, `"`)
		if !found {
			return "", "", false
		}
		name += before
		if !strings.HasPrefix(after, `"`) {
			return name, after, true
		}
		name, s = name+`"`, after[1:]
	}
}

// quoteName writes a name with escapes for all but letters, digits and underscores: pgdriver looks for quotes and $1 in
// the text, and would find those of a name.
func quoteName(name string) string {
	var b strings.Builder
	b.WriteString(`U&"`)
	for _, r := range name {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\+%06X`, r)
	}
	b.WriteByte('"')
	return b.String()
}

// textStmt is a prepared statement that is not prepared: each call sends the text.
type textStmt struct {
	conn  *conn
	query string
}

var (
	_ driver.StmtExecContext  = (*textStmt)(nil)
	_ driver.StmtQueryContext = (*textStmt)(nil)
)

// NumInput implements driver.Stmt: the number is not known, the server counts.
func (s *textStmt) NumInput() int { return -1 }

// Close implements driver.Stmt.
func (s *textStmt) Close() error { return nil }

// ExecContext implements driver.StmtExecContext.
func (s *textStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.query, args)
}

// QueryContext implements driver.StmtQueryContext.
func (s *textStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.query, args)
}

// Exec implements driver.Stmt; database/sql uses ExecContext.
func (s *textStmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }

// Query implements driver.Stmt; database/sql uses QueryContext.
func (s *textStmt) Query([]driver.Value) (driver.Rows, error) { return nil, driver.ErrSkip }
