package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
