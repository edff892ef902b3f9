package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNotifyTest(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer receiver.Close()
	w := newWorld(t)
	w.write(t, fmt.Sprintf("version: 1\nchannels: {ops: {webhook: {url: %q, allow_private: true}}}\njobs: {}\n", receiver.URL+"/canary"))
	w.env["DATABASE_URL"] = "sqlite:cronlatch.db"

	got := w.run(t, "notify", "test", "ops")
	assert.Equal(t, exitOK, got.code, got.errors)
	assert.Equal(t, "sent to ops\n", got.out)
	got = w.run(t, "notify", "test", "op")
	assert.Equal(t, exitFailure, got.code)
	assert.Contains(t, got.errors, `there is no channel "op"; the configuration has ops`)
	status = http.StatusNotFound
	got = w.run(t, "notify", "test", "ops")
	assert.Equal(t, exitFailure, got.code)
	assert.Contains(t, got.errors, "the message was not sent: the server answered 404")
	assert.NotContains(t, got.errors, "canary")
}
