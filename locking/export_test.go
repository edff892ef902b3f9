package locking

import "fmt"

// Statement is a query with bun's placeholders.
type Statement struct {
	Text string
	Args []any
}

// PostgresStatements returns the statements that must be cheap in a large table, for the batch given as JSON.
func PostgresStatements(batch string) map[string]Statement {
	return map[string]Statement{
		"acquire": {pgAcquire, []any{batch, "{}"}},
		"renew":   {fmt.Sprintf(pgChange, "SKIP LOCKED", pgUnforced, pgExtend, pgNoWake), []any{batch}},
		"release": {fmt.Sprintf(pgChange, "", pgUnreleased, pgFree, pgWake), []any{batch}},
		"force":   {pgForce, []any{"many 7", 7, false, "ann", "stuck", "a"}},
		"look":    {pgLook, []any{`["many 7"]`}},
		"list":    {fmt.Sprintf(pgList, pgLive), []any{"many 7", "many 7\U0010FFFF", "", "", 10}},
	}
}
