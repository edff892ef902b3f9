package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

func tokenWorld(t *testing.T, url string) *world {
	t.Helper()
	w := newWorld(t)
	w.env["DATABASE_URL"] = url
	return w
}

// stored is the table as a replica reads it.
func stored(t *testing.T, url string) auth.Snapshot {
	t.Helper()
	s, err := auth.OpenStore(dbtest.Open(t, url).Main)
	require.NoError(t, err)
	snapshot, err := s.Load(t.Context())
	require.NoError(t, err)
	return snapshot
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := tokenWorld(t, url)
		w.run(t, "token", "list").says(t, exitOK, "",
			"cronlatch: the database has no token; `cronlatch token create ID --role ROLE` makes one\n")

		began := time.Now()
		made := w.run(t, "token", "create", "ci", "--role", "locker", "--prefix", "deploy:", "--expires", "90d")
		require.Equal(t, exitOK, made.code, made.errors)
		assert.Greater(t, time.Since(began), auth.Freshness, "every replica knows it")
		token := strings.TrimSuffix(made.out, "\n")
		id, ok := auth.ID(token)
		assert.True(t, ok, "stdout is the token and nothing else: %q", made.out)
		assert.Equal(t, "ci", id)
		assert.NotContains(t, made.errors, token)
		entry := stored(t, url).Entries[0]
		assert.Equal(t, auth.Entry{
			ID: "ci", Hash: auth.Hash(token), Role: auth.Locker, Prefix: "deploy:",
			CreatedAt: entry.CreatedAt, ExpiresAt: entry.CreatedAt.Add(90 * 24 * time.Hour),
		}, entry)

		w.run(t, "token", "create", "ci", "--role", "viewer").says(t, exitFailure, "",
			"cronlatch: there is a token with the id ci\ncronlatch: --replace takes its place; `cronlatch token list` shows all\n")
		replaced := w.run(t, "token", "create", "ci", "--role", "viewer", "--replace")
		require.Equal(t, exitOK, replaced.code, replaced.errors)
		assert.Equal(t, auth.Hash(strings.TrimSpace(replaced.out)), stored(t, url).Entries[0].Hash)

		began = time.Now()
		w.run(t, "token", "revoke", "ci").says(t, exitOK, "", "cronlatch: the token ci is revoked; every replica that reaches the database refuses it\n")
		assert.Greater(t, time.Since(began), auth.Freshness, "it returns when that is so")

		var views []tokenView
		list := w.run(t, "token", "list", "-o", "json")
		require.NoError(t, json.Unmarshal([]byte(list.out), &views))
		require.Len(t, views, 1)
		assert.Equal(t, "revoked", views[0].State)
		assert.Equal(t, "viewer", views[0].Role)
		assert.Nil(t, views[0].ExpiresAt)
		assert.NotContains(t, list.out, stored(t, url).Entries[0].Hash)
	})
}

func TestTokenCreateRefuses(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	w := tokenWorld(t, url)
	for want, args := range map[string][]string{
		"token create needs an id":              {},
		`"CI" cannot be an id`:                  {"CI", "--role", "viewer"},
		"token create needs --role":             {"ci"},
		`did you mean "locker"?`:                {"ci", "--role", "lokcer"},
		"--prefix is for the role locker":       {"ci", "--role", "viewer", "--prefix", "x"},
		`--prefix "a\nb" begins no name`:        {"ci", "--role", "locker", "--prefix", "a\nb"},
		"is not a duration like 12h, 90d":       {"ci", "--role", "viewer", "--expires", "soon"},
		`"-1h" is not a duration`:               {"ci", "--role", "viewer", "--expires", "-1h"},
		"the id admin is that of the generated": {"admin", "--role", "viewer"},
		"takes one argument":                    {"ci", "cd", "--role", "viewer"},
	} {
		got := w.run(t, append([]string{"token", "create"}, args...)...)
		assert.Equal(t, exitUsage, got.code, args)
		assert.Empty(t, got.out)
		assert.Contains(t, strings.ReplaceAll(got.errors, `\\n`, `\n`), want)
	}
	w.write(t, `{jobs: {}, auth: {tokens: [{id: ci, role: viewer, sha256: "`+auth.Hash("x")+`"}]}}`)
	w.run(t, "token", "create", "ci", "--role", "viewer").says(t, exitFailure, "",
		"cronlatch: the configuration has a token with the id ci, and it would win\ncronlatch: take another id\n")
	assert.Empty(t, stored(t, url).Entries)
}

// What --yaml prints is an item that the configuration accepts, and the token beside it is the one of the hash.
func TestTokenForTheConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["DATABASE_URL"] = "sqlite:/no/such/folder/x.db"
	var items strings.Builder
	tokens := map[string]string{}
	for _, args := range [][]string{
		{"ops", "--role", "admin"},
		{"007", "--role", "viewer", "--expires", "2w"},
		{"ci", "--role", "locker", "--prefix", `a"b\c: ${HOME} # $$ ü`},
	} {
		got := w.run(t, append([]string{"token", "create", "--yaml"}, args...)...)
		require.Equal(t, exitOK, got.code, got.errors)
		items.WriteString(got.out)
		tokens[args[0]] = regexp.MustCompile(`cl_\S+`).FindString(got.errors)
		assert.NotContains(t, got.out, "cl_")
	}
	w.write(t, "jobs: {}\nauth:\n  tokens:\n"+regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSuffix(items.String(), "\n"), "    ")+"\n")
	config, err := w.app().loadConfig()
	require.NoError(t, err)
	assert.Equal(t, []configs.Token{
		{ID: "ops", SHA256: auth.Hash(tokens["ops"]), Role: "admin"},
		{ID: "007", SHA256: auth.Hash(tokens["007"]), Role: "viewer", ExpiresAt: testNow().Add(14 * 24 * time.Hour)},
		{ID: "ci", SHA256: auth.Hash(tokens["ci"]), Role: "locker", Prefix: `a"b\c: ${HOME} # $$ ü`},
	}, config.Auth.Tokens)
}

func TestTokenRevoke(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	w := tokenWorld(t, url)
	require.Equal(t, exitOK, w.run(t, "token", "create", "deploy", "--role", "viewer").code)
	w.run(t, "token", "revoke", "depoly").says(t, exitFailure, "",
		"cronlatch: there is no token depoly, neither in the database nor in the configuration here, did you mean \"deploy\"?\n"+
			"cronlatch: --anyway revokes it in the configuration of every replica that may have it\n")
	assert.Equal(t, exitUsage, w.run(t, "token", "revoke", "a b").code)
	require.Len(t, stored(t, url).Entries, 1)

	w.write(t, `{jobs: {}, auth: {tokens: [{id: ci, role: viewer, sha256: "`+auth.Hash("x")+`"}]}}`)
	require.Equal(t, exitOK, w.run(t, "token", "revoke", "ci").code, "that of the configuration")
	require.Equal(t, exitOK, w.run(t, "token", "revoke", "other", "--anyway").code)
	entries := stored(t, url).Entries
	require.Len(t, entries, 3)
	for _, e := range entries {
		assert.Equal(t, e.ID != "deploy", !e.RevokedAt.IsZero() && e.Hash == "", e.ID)
	}
}

func TestTokensWithoutADatabase(t *testing.T) {
	t.Parallel()
	w := tokenWorld(t, "postgres://u@127.0.0.1:1/x?sslmode=disable")
	w.patience = 300 * time.Millisecond
	for _, args := range [][]string{{"list"}, {"create", "ci", "--role", "viewer"}, {"revoke", "ci"}} {
		got := w.run(t, append([]string{"token"}, args...)...)
		assert.Equal(t, exitUnavailable, got.code, args)
		assert.Empty(t, got.out, "no token that nobody knows")
	}
}

// The first start says the token once; afterwards the client finds it by itself.
func TestServeMakesATokenThatTheClientFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "jobs: {}")
	first := w.spawn(t, "serve", "--listen", "127.0.0.1:0")
	line := first.waitFor(t, "the admin token, shown this once and kept in ")
	token := line[strings.LastIndex(line, " ")+1:]
	assert.Equal(t, token, tokenFor(t, w, "127.0.0.1:1"), "beside the configuration")
	_, address, _ := strings.Cut(first.waitFor(t, "ready at http://"), "ready at ")
	w.run(t, "health", "--server", address).says(t, exitOK, "ready\n", "")
	first.signal(t, syscall.SIGTERM)
	code, rest := first.end(t)
	assert.Equal(t, exitOK, code, rest)
	assert.NotContains(t, rest+first.output.String(), token)

	second := w.spawn(t, "serve", "--listen", "127.0.0.1:0")
	assert.Contains(t, second.waitFor(t, "log in with the token in "), "cronlatch.token")
	second.waitFor(t, "ready at ")
	second.signal(t, syscall.SIGTERM)
	code, rest = second.end(t)
	assert.Equal(t, exitOK, code, rest)
	assert.NotContains(t, rest+second.output.String(), token, "shown once")
}
