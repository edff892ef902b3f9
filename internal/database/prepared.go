package database

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// A statement that comes with arguments is prepared, once for each connection, and from then on costs the server neither
// parsing nor planning. (What bun formats comes without arguments, and is sent as text.) The texts are few and constant:
// whoever makes them from values would fill the server's memory. Behind a pooler nothing is prepared, and pgdriver
// writes the arguments into the text.

// maxPrepared is how many statements one connection keeps; what comes after them is sent as text.
const maxPrepared = 64

// statement is the prepared statement of a text; nil when it is to be sent as text.
func (c *conn) statement(ctx context.Context, query string, args []driver.NamedValue) (*stmt, error) {
	if !c.prepares || len(args) == 0 || c.settings != "" {
		return nil, nil //nolint:nilnil // no statement is an answer, too
	}
	if s := c.prepared[query]; s != nil {
		return s, nil
	}
	if len(c.prepared) >= maxPrepared {
		return nil, nil //nolint:nilnil // see above
	}
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, ok := made.(*stmt)
	if !ok {
		return nil, fmt.Errorf("preparing a statement made a %T", made)
	}
	if c.prepared == nil {
		c.prepared = map[string]*stmt{}
	}
	c.prepared[query] = s
	return s, nil
}

// outdated reports whether a prepared statement can no longer be used, because the schema changed under it or the session
// was reset: nothing was executed. Outside a transaction the text can take its place.
func (c *conn) outdated(query string, err error) (again bool) {
	switch SQLState(err) {
	case "0A000", "26000":
		delete(c.prepared, query)
		return c.wire.usable() && c.wire.in.status == 'I'
	}
	return false
}
