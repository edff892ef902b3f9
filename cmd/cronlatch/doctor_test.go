package main

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// checkOf is the level of one line of doctor -o json.
func checkOf(t *testing.T, a answer, check string) any {
	t.Helper()
	for _, f := range decode[[]map[string]any](t, a.out) {
		if f["check"] == check {
			return f["level"]
		}
	}
	return nil
}

func TestDoctorOnADatabase(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		w := connected(t, url)
		w.env["CRONLATCH_LISTEN"] = "127.0.0.1:0"
		got := w.run(t, "doctor", "-o", "json")
		assert.Equal(t, exitOK, got.code, got.out+got.errors)
		for _, check := range []string{"database", "schema", "clock", "locks", "listener", "open files"} {
			assert.Equal(t, "ok", checkOf(t, got, check), "%s in %s", check, got.out)
		}
		assert.Equal(t, "warn", checkOf(t, got, "replicas"), "nobody is there")
		w.env["CRONLATCH_AUTH"], w.env["CRONLATCH_LISTEN"] = "none", "0.0.0.0:0"
		bad := w.run(t, "doctor", "-o", "json")
		assert.Equal(t, exitFailure, bad.code)
		assert.Equal(t, "fail", checkOf(t, bad, "listener"))
	})
}

// Without a database everything else is still looked at.
func TestDoctorWithoutADatabase(t *testing.T) {
	t.Parallel()
	w := connected(t, "postgres://nobody@127.0.0.1:1/none")
	got := w.run(t, "doctor", "-o", "json")
	assert.Equal(t, exitUnavailable, got.code)
	assert.Equal(t, "fail", checkOf(t, got, "database"))
	assert.Equal(t, "ok", checkOf(t, got, "open files"))
	w.write(t, "jobs: [")
	assert.Equal(t, "fail", checkOf(t, w.run(t, "doctor", "-o", "json"), "configuration"))
}

// A URL that cannot be read is a mistake, which no waiting mends: it is not the outage that 69 stands for.
func TestDoctorOnAWrongURL(t *testing.T) {
	t.Parallel()
	w := connected(t, "mysql://nobody:hush@127.0.0.1/none")
	got := w.run(t, "doctor", "-o", "json")
	assert.Equal(t, exitFailure, got.code)
	assert.Equal(t, "fail", checkOf(t, got, "database"))
	assert.NotContains(t, got.out+got.errors, "hush")
}

// Who may connect and do nothing else is told so, by every command, and doctor says what is missing.
func TestARoleWithoutRights(t *testing.T) {
	t.Parallel()
	if os.Getenv("CRONLATCH_TEST_POSTGRES_DIRECT") != "" {
		t.Skip("the pooler of the tests lets in a closed list of roles")
	}
	address := dbtest.PostgresURL(t)
	db := dbtest.Open(t, address)
	const role = "cli_without_rights"
	for _, query := range []string{"DROP ROLE IF EXISTS " + role, "CREATE ROLE " + role + " LOGIN PASSWORD 'hush'"} {
		_, err := db.Main.NewRaw(query).Exec(t.Context())
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := db.Main.NewRaw("DROP ROLE " + role).Exec(context.WithoutCancel(t.Context()))
		assert.NoError(t, err)
	})
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.User = url.UserPassword(role, "hush")
	w := connected(t, u.String())
	for _, line := range []string{"lock x -- true", "locks list", "runs list", "run backup:db --detach"} {
		got := w.run(t, strings.Fields(line)...)
		assert.Equal(t, exitDenied, got.code, "%s: %s", line, got.errors)
		assert.Contains(t, got.errors, "doctor", line)
		assert.NotContains(t, got.errors, "cannot be reached", "it was: %s", line)
	}
	got := w.run(t, "doctor", "-o", "json")
	assert.Equal(t, exitFailure, got.code)
	assert.Equal(t, "fail", checkOf(t, got, "role"))
	assert.NotContains(t, got.out+got.errors, "hush")
}
