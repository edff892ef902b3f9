package jobs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// ExplainList is how the database reads a list; on SQLite only the half that is meant.
func ExplainList(t *testing.T, l *Ledger, db bun.IDB, f RunFilter) string {
	t.Helper()
	b, err := l.bounds(t.Context(), &f)
	if err != nil {
		t.Fatal(err)
	}
	filter, job := f.document()
	doc, err := json.Marshal(filter)
	if err != nil {
		t.Fatal(err)
	}
	how, column := "EXPLAIN (ANALYZE, COSTS OFF) ", 0
	if db.Dialect().Name() == dialect.SQLite {
		how, column = "EXPLAIN QUERY PLAN ", 3
	}
	rows, err := db.QueryContext(t.Context(), how+l.q.list, string(doc), job, b.from, b.to, b.at, b.id, 50)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var lines []string
	for rows.Next() {
		columns := make([]any, column+1)
		for i := range columns {
			columns[i] = new(any)
		}
		if err := rows.Scan(columns...); err != nil {
			t.Fatal(err)
		}
		v := *(columns[column].(*any))
		if raw, ok := v.([]byte); ok {
			v = string(raw)
		}
		line, _ := v.(string)
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
