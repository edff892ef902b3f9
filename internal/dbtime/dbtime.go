// Package dbtime carries instants between Go and the two databases: timestamptz on PostgreSQL, integer milliseconds
// since 1970 in UTC on SQLite. Both sides keep an instant, never a local time; everything that comes out is in UTC.
package dbtime

import (
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/uptrace/bun/dialect"
)

// Time scans a column of either database. NULL is the zero time.
type Time struct{ time.Time } //nolint:recvcheck // Scan must write, Value must not need a pointer

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		t.Time = time.Time{}
	case time.Time:
		t.Time = v.UTC()
	case int64:
		t.Time = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("dbtime: scanning a %T", src)
	}
	return nil
}

// Value is not for writing: what a time looks like depends on the database, which a Valuer does not know. Use Arg.
func (t Time) Value() (driver.Value, error) {
	return nil, fmt.Errorf("dbtime: %v must be written through dbtime.Arg", t.Time)
}

// Ptr is nil for NULL.
func (t Time) Ptr() *time.Time {
	if t.IsZero() {
		return nil
	}
	v := t.Time
	return &v
}

// Arg is the instant as a statement of the given database takes it, alone or inside a JSON document; the zero time
// is NULL.
func Arg(d dialect.Name, t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case d == dialect.SQLite:
		return t.UnixMilli()
	default:
		return t.UTC().Format("2006-01-02T15:04:05.999999Z07:00")
	}
}

// Millis is a duration in whole milliseconds, rounded up: the unit of both databases' SQL here.
func Millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
