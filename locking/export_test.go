package locking

import (
	"database/sql"
	"fmt"
)

// Statement is a query and its arguments, as they are written in SQL.
type Statement struct {
	Text string
	Args []string
}

// PostgresStatements returns the statements that must be cheap in a large table, for the batch given as JSON.
func PostgresStatements(batch string) map[string]Statement {
	return map[string]Statement{
		"acquire": {pgAcquire, []string{quote(batch), "'{}'"}},
		"renew":   {fmt.Sprintf(pgChange, "SKIP LOCKED", pgUnforced, pgExtend, pgNoWake), []string{quote(batch)}},
		"release": {fmt.Sprintf(pgChange, "", pgUnreleased, pgFree, pgWake), []string{quote(batch)}},
		"force":   {pgForce, []string{"'many 7'", "7", "false", "'ann'", "'stuck'", "'a'"}},
		"look":    {pgLook, []string{`'["many 7"]'`}},
		"list":    {fmt.Sprintf(pgList, pgLive), []string{"'many 7'", "'many 7\U0010FFFF'", "''", "''", "10"}},
	}
}

func quote(text string) string { return "'" + text + "'" }

// ExpiredInTheQueue asks about a row as the acquire statement returns it.
func ExpiredInTheQueue(r Record, written bool, replaced string) bool {
	return (&row{Record: r, done: written, replaced: sql.NullString{String: replaced, Valid: true}}).expiredInTheQueue()
}
