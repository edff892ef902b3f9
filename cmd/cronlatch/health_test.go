package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/httpapi"
)

// daemonAt answers as a daemon does.
func daemonAt(t *testing.T, ready func(context.Context) error) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(httpapi.New(httpapi.Options{Ready: ready}))
	t.Cleanup(s.Close)
	return s
}

func TestHealth(t *testing.T) {
	t.Parallel()
	ready := daemonAt(t, nil)
	leaving := daemonAt(t, func(context.Context) error {
		return &httpapi.NotReadyError{Code: "draining", Reason: "this replica is draining"}
	})
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	w := newWorld(t)

	w.run(t, "health", "--server", ready.URL).says(t, exitOK, "ready\n", "")
	w.run(t, "health", "--server", ready.Listener.Addr().String()).says(t, exitOK, "ready\n", "")
	w.run(t, "health", "--live", "--server", leaving.URL).says(t, exitOK, "ok\n", "")
	w.run(t, "health", "--server", leaving.URL).says(t, exitUnavailable, "", "cronlatch: not ready: this replica is draining  [draining]\n")
	w.run(t, "health", "--server", other.URL).says(t, exitUnavailable, "", "cronlatch: "+other.URL+"/readyz answered 404 Not Found\n")

	w.env["CRONLATCH_SERVER"] = leaving.URL
	assert.Equal(t, exitUnavailable, w.run(t, "health").code)
	assert.Equal(t, exitOK, w.run(t, "health", "--server", ready.URL).code, "the flag wins")
}

// Without an address health asks where a daemon with the same file and environment listens.
func TestHealthFindsTheDaemon(t *testing.T) {
	t.Parallel()
	s := daemonAt(t, nil)
	w := newWorld(t)
	w.write(t, "listen: "+s.Listener.Addr().String()+"\njobs: {}\n")
	w.run(t, "health").says(t, exitOK, "ready\n", "")

	w.env["CRONLATCH_LISTEN"] = s.Listener.Addr().String()
	w.write(t, "broken: [")
	w.run(t, "health").says(t, exitOK, "ready\n", "")
}

func TestHealthWithoutADaemon(t *testing.T) {
	t.Parallel()
	got := newWorld(t).run(t, "health", "--server", nobodyListens)
	assert.Equal(t, exitUnavailable, got.code)
	assert.Empty(t, got.out)
	assert.Contains(t, got.errors, "cronlatch: no answer from http://"+nobodyListens+"/readyz: ")
	assert.Contains(t, got.errors, "cronlatch: is `cronlatch serve` running?\n")
}

func TestHealthGivesUp(t *testing.T) {
	t.Parallel()
	silent := listen(t)
	began := time.Now()
	w := newWorld(t)
	w.patience = patience
	got := w.run(t, "health", "--server", silent.Addr().String())
	assert.Equal(t, exitUnavailable, got.code)
	assert.Less(t, time.Since(began), patience+10*time.Second)
}

func TestReachable(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"127.0.0.1:8420": "127.0.0.1:8420", ":8420": "127.0.0.1:8420", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "127.0.0.1:1",
		"[::1]:8420": "[::1]:8420", "localhost:8420": "localhost:8420", "nonsense": "nonsense",
	} {
		assert.Equal(t, want, reachable(listen), listen)
	}
}
