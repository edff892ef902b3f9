package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplitSQL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"SELECT 1":                          {"SELECT 1"},
		" SELECT 1 ; ":                      {"SELECT 1"},
		"a; b;\n;; c":                       {"a", "b", "c"},
		"SELECT ';'; b":                     {"SELECT ';'", "b"},
		"SELECT 'it''s;'; b":                {"SELECT 'it''s;'", "b"},
		`SELECT E'a\';b'; c`:                {`SELECT E'a\';b'`, "c"},
		`SELECT 'a\'; c`:                    {`SELECT 'a\'`, "c"},
		`SELECT nice'a\'; c`:                {`SELECT nice'a\'`, "c"},
		`SELECT ";""x"; c`:                  {`SELECT ";""x"`, "c"},
		"SELECT `;`; c":                     {"SELECT `;`", "c"},
		"DO $$ BEGIN; END $$; c":            {"DO $$ BEGIN; END $$", "c"},
		"DO $a$ ;$b$;$$; $a$; c":            {"DO $a$ ;$b$;$$; $a$", "c"},
		"SELECT $1; c":                      {"SELECT $1", "c"},
		"SELECT a$b$; c$b$":                 {"SELECT a$b$", "c$b$"},
		"a -- ; '\n; b":                     {"a -- ; '", "b"},
		"-- only a comment\nSELECT 1":       {"-- only a comment\nSELECT 1"},
		"a /* ; /* ' */ ; */; b":            {"a /* ; /* ' */ ; */", "b"},
		"a; -- the end":                     {"a"},
		"a; /* the end */":                  {"a"},
		"DELETE WHERE m = {{ .Period }}; b": {"DELETE WHERE m = {{ .Period }}", "b"},
		"SAVEPOINT x; RELEASE x":            {"SAVEPOINT x", "RELEASE x"},
		"beginning; ends":                   {"beginning", "ends"},
		"SELECT 'é;'; b":                    {"SELECT 'é;'", "b"},
		"(SELECT 1)":                        {"(SELECT 1)"},
		`SELECT '{{ "{{" }};'; b`:           {`SELECT '{{ "{{" }};'`, "b"},
		`SELECT {{ "{{" }}`:                 {`SELECT {{ "{{" }}`},
	} {
		got, err := SplitSQL(text, Tokens{Period: true})
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestSplitSQLRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		at      string // where the fault begins
		message string
	}{
		"":                            {"", "there is no statement"},
		" ; -- x":                     {" ; -- x", "there is no statement"},
		"SELECT 'a; b":                {"'a; b", "is not closed"},
		`SELECT "a; b`:                {`"a; b`, "is not closed"},
		"DO $$ x":                     {"$$ x", "is not closed"},
		"a /* /* */ b":                {"/* /* */ b", "is not closed"},
		"UPDATE x; commit; UPDATE y":  {"commit; UPDATE y", "COMMIT is not for a job"},
		"/* c */ ROLLBACK TO x":       {"ROLLBACK TO x", "ROLLBACK is not for a job"},
		"PREPARE TRANSACTION 'x'":     {"PREPARE TRANSACTION 'x'", "one transaction"},
		"SELECT 'm-{{ .Period }}'":    {"{{ .Period }}'", "a token in a text in quotes"},
		"DO $$ {{ .Resource }} $$":    {"{{ .Resource }} $$", "a token in a text in dollar quotes"},
		"SELECT 1 -- {{ .Resource }}": {"{{ .Resource }}", "a token in a comment"},
		"SELECT {{ .Month }}":         {"{{ .Month }}", "is not known"},
	} {
		_, err := SplitSQL(text, Tokens{Period: true})
		offset, length := placeOf(t, err)
		require.ErrorContains(t, err, want.message, text)
		assert.Equal(t, want.at, text[offset:], text)
		assert.LessOrEqual(t, offset+length, len(text), text)
	}
	_, err := SplitSQL("SELECT {{ .Period }}", Tokens{Period: false})
	assert.ErrorContains(t, err, "has none")
}

func placeOf(t *testing.T, err error) (offset, length int) {
	t.Helper()
	var token *TokenError
	if errors.As(err, &token) {
		return token.Offset, token.Length
	}
	var fault *SQLError
	require.ErrorAs(t, err, &fault)
	return fault.Offset, fault.Length
}

// TestATokenInSQLIsOneLiteral: a name is whatever a configuration says, quotes included.
func TestATokenInSQLIsOneLiteral(t *testing.T) {
	t.Parallel()
	a := Attempt{
		Job: &Job{SQL: &SQL{Statements: []string{"SELECT {{ .Resource }}, {{.ScheduledAt}}", `SELECT {{ "{{" }}`}}},
		Run: Run{Resource: "x'; DROP TABLE y; --", ScheduledAt: time.Unix(0, 0)},
	}
	got, err := a.SQLStatements()
	require.NoError(t, err)
	assert.Equal(t, []string{"SELECT 'x''; DROP TABLE y; --', '1970-01-01T00:00:00Z'", "SELECT {{"}, got)
}

func TestWhatMayHoldCredentialsDoesNotPrint(t *testing.T) {
	t.Parallel()
	const canary = "hunter2-canary"
	job := Job{
		HTTP: &HTTP{Method: "GET", URL: canary, Body: canary, Headers: []Header{{"A", canary}}},
		SQL:  &SQL{Database: "w", URL: canary, Statements: []string{canary}},
	}
	text, err := json.Marshal(job)
	require.NoError(t, err)
	request, err := (&Attempt{Job: &job}).HTTPRequest()
	require.NoError(t, err)
	all := strings.Join([]string{
		string(text), fmt.Sprintf("%v %+v %#v %s", job.HTTP, *job.HTTP, *job.HTTP, job.HTTP),
		fmt.Sprintf("%v %+v %#v %s", job.SQL, *job.SQL, *job.SQL, job.SQL), fmt.Sprintf("%+v %#v", request, request),
		fmt.Sprintf("%+v", job),
	}, "\n")
	assert.NotContains(t, all, canary)
	assert.Contains(t, all, "http{GET ***}")
	assert.Contains(t, all, "sql{w ***}")
}

func FuzzSplitSQL(f *testing.F) {
	for _, seed := range []string{"a; b", "SELECT E'\\';'", "DO $x$;$x$;", "/* /* */ */ a", `"`, "{{ .Period }}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := SplitSQL(text, Tokens{Period: true})
		if err != nil {
			offset, length := placeOf(t, err)
			require.LessOrEqual(t, offset+length, len(text))
			return
		}
		require.NotEmpty(t, list)
		for _, one := range list { // a statement is not taken apart again
			again, err := SplitSQL(one, Tokens{Period: true})
			require.NoError(t, err, one)
			require.Equal(t, []string{one}, again)
		}
	})
}
