package main

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/auth"
)

// app is a command in this world, for tests of what commands share.
func (w *world) app() *app {
	return &app{process: process{Dir: w.dir, Patience: w.patience, Getenv: func(name string) string { return w.env[name] }, Now: testNow}}
}

// token writes a token file and returns the token.
func (w *world) token(t *testing.T, name string) string {
	t.Helper()
	token, err := auth.New(auth.AdminID)
	require.NoError(t, err)
	w.file(t, name, token+"\n")
	return token
}

func TestWhichServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.app().server("")
	require.NoError(t, err)
	assert.Nil(t, s, "the database then")

	w.env["CRONLATCH_SERVER"] = "127.0.0.1:1"
	s, err = w.app().server("")
	require.NoError(t, err)
	assert.Equal(t, "http://127.0.0.1:1", s.URL.String())
	s, err = w.app().server("https://locks.example.com:8443/cronlatch")
	require.NoError(t, err)
	assert.Equal(t, "https://locks.example.com:8443/cronlatch", s.URL.String(), "the flag wins")
	assert.Equal(t, "https://locks.example.com:8443/cronlatch/readyz", s.at("/readyz"))
	s, err = w.app().server("unix:x.sock")
	require.NoError(t, err)
	assert.Equal(t, "http://localhost", s.URL.String())
	assert.Equal(t, "unix:x.sock /readyz", s.at("/readyz"))

	for _, bad := range []string{
		"ftp://x", "http://", "://", "unix:", "http://u:p@x", "http://x?token=y", "http://x#y", "http://[::1", "http://:8420",
	} {
		_, err := w.app().server(bad)
		require.Error(t, err, bad)
		assert.Equal(t, exitUsage, classify(err).code, bad)
		assert.NotContains(t, err.Error(), "u:p", "a password is not repeated")
	}
}

// The token file never leaves this machine; a token that the user gives goes where the user says.
func TestWhereTheTokenGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kept := w.token(t, "cronlatch.token")
	given, err := auth.New("given")
	require.NoError(t, err)
	local := []string{
		"127.0.0.1:1", "http://127.9.9.9", "http://localhost:1", "https://[::1]:1", "http://[::ffff:127.0.0.1]", "unix:/run/x", "unix:x",
	}
	remote := []string{
		"192.0.2.1", "https://locks.example.com", "http://127.0.0.1.example.com", "http://localhost.example.com", "http://0.0.0.0:1",
		"https://[2001:db8::1]", "localhosts:1", "http://127.1",
	}
	for _, address := range local {
		assert.Equal(t, kept, tokenFor(t, w, address), address)
	}
	for _, address := range remote {
		assert.Empty(t, tokenFor(t, w, address), address)
	}
	w.env["CRONLATCH_TOKEN"] = given
	for _, address := range append(local, remote...) {
		assert.Equal(t, given, tokenFor(t, w, address), address)
	}
	w.env["CRONLATCH_TOKEN"] = "hunter2"
	_, err = w.app().server("127.0.0.1:1")
	require.ErrorContains(t, err, "CRONLATCH_TOKEN is not a token")
	assert.NotContains(t, err.Error(), "hunter2")
}

func tokenFor(t *testing.T, w *world, address string) string {
	t.Helper()
	s, err := w.app().server(address)
	require.NoError(t, err, address)
	return s.Token
}

func TestWhichTokenFile(t *testing.T) {
	t.Parallel()
	const address = "127.0.0.1:1"
	w := newWorld(t)
	assert.Empty(t, tokenFor(t, w, address), "without a file the server says whether it wants one")
	usual, named, env := w.token(t, "cronlatch.token"), w.token(t, "named"), w.token(t, "env")
	assert.Equal(t, usual, tokenFor(t, w, address))
	w.write(t, "auth: {token_file: named}\njobs: {}\n")
	assert.Equal(t, named, tokenFor(t, w, address))
	w.env["CRONLATCH_TOKEN_FILE"] = filepath.Join(w.dir, "env")
	assert.Equal(t, env, tokenFor(t, w, address))
	delete(w.env, "CRONLATCH_TOKEN_FILE")
	w.write(t, "broken: [")
	assert.Equal(t, usual, tokenFor(t, w, address), "a broken file stops no client")

	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "elsewhere"), 0o700))
	w.env["CRONLATCH_CONFIG"] = "elsewhere/c.yaml"
	other := w.token(t, "elsewhere/cronlatch.token")
	assert.Equal(t, other, tokenFor(t, w, address), "beside the configuration")

	w.file(t, "elsewhere/cronlatch.token", "nonsense")
	_, err := w.app().server(address)
	require.Error(t, err)
	assert.Equal(t, exitDenied, classify(err).code)
}

// A name that is said to be this machine and resolves to another one gets nothing.
func TestLocalhostIsThisMachine(t *testing.T) {
	t.Parallel()
	u := &url.URL{Scheme: "http", Host: "localhost:1"}
	control := dialer(u).Control
	require.NoError(t, control("tcp4", "127.0.0.1:1", nil))
	require.NoError(t, control("tcp6", "[::1]:1", nil))
	require.ErrorContains(t, control("tcp4", "192.0.2.1:1", nil), "localhost is 192.0.2.1:1, which is not this machine")
	assert.Nil(t, dialer(&url.URL{Host: "example.com"}).Control)
}

func TestTheClientFollowsNobody(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer thief.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	s, err := newWorld(t).app().server(redirecting.URL)
	require.NoError(t, err)
	defer s.Client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL.String(), http.NoBody)
	require.NoError(t, err)
	resp, err := s.Client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusTemporaryRedirect, resp.StatusCode)
	assert.False(t, reached.Load())
	transport, ok := s.Client.Transport.(*http.Transport)
	require.True(t, ok)
	assert.Nil(t, transport.Proxy, "HTTP_PROXY is not asked")
}

// readyHandler is a daemon that is ready, and wants no token.
func readyHandler(t *testing.T) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"), "health shows no token")
		_, _ = w.Write([]byte(`{"status": "ready"}`))
	})
}

// secureDaemon is one with TLS; its certificate is in the file tls.crt.
func secureDaemon(t *testing.T, w *world) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(readyHandler(t))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of clients that hang up
	s.StartTLS()
	t.Cleanup(s.Close)
	w.file(t, "tls.crt", string(pemOf(s.Certificate())))
	return s
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func TestHealthOverTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.token(t, "cronlatch.token")
	s := secureDaemon(t, w)
	stranger := w.run(t, "health", "--server", s.URL)
	assert.Equal(t, exitUnavailable, stranger.code, "nobody vouches for it")
	assert.Contains(t, stranger.errors, "certificate")
	w.run(t, "health", "--server", s.URL, "--cacert", "tls.crt").says(t, exitOK, "ready\n", "")
	w.env["CRONLATCH_CACERT"] = filepath.Join(w.dir, "tls.crt")
	w.run(t, "health", "--server", s.URL).says(t, exitOK, "ready\n", "")
	w.run(t, "health", "--server", s.URL, "--cacert", "no.crt").says(t, exitConfig, "",
		"cronlatch: reading the roots: open DIR/no.crt: no such file or directory\n")
	w.write(t, "jobs: {}")
	w.run(t, "health", "--server", s.URL, "--cacert", "cronlatch.yaml").says(t, exitConfig, "",
		"cronlatch: cronlatch.yaml holds no certificate in PEM form\n")
}

// A container's health check knows the daemon's own certificate, whatever name is in it.
func TestHealthFindsTheDaemonWithTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := secureDaemon(t, w)
	w.write(t, "listen: "+s.Listener.Addr().String()+"\ntls: {cert: tls.crt, key: tls.key}\njobs: {}\n")
	w.run(t, "health").says(t, exitOK, "ready\n", "")

	other := httptest.NewTLSServer(nil)
	defer other.Close()
	changed := *other.Certificate()
	changed.Raw = append([]byte{}, changed.Raw...)
	changed.Raw[len(changed.Raw)-1] ^= 1
	w.file(t, "tls.crt", string(pemOf(&changed)))
	got := w.run(t, "health")
	assert.Equal(t, exitUnavailable, got.code)
	assert.Contains(t, got.errors, errOtherCertificate.Error())
	require.NoError(t, os.Remove(filepath.Join(w.dir, "tls.crt")))
	assert.Equal(t, exitUnavailable, w.run(t, "health").code)
}

func TestHealthOnASocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "cl") //nolint:usetesting // the path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(readyHandler(t))
	require.NoError(t, s.Listener.Close())
	s.Listener = l
	s.Start()
	defer s.Close()
	w := newWorld(t)
	w.dir = dir
	w.run(t, "health", "--server", "unix:s").says(t, exitOK, "ready\n", "")
	w.run(t, "health", "--server", "unix:"+filepath.Join(dir, "s")).says(t, exitOK, "ready\n", "")
	w.env["CRONLATCH_LISTEN"] = "unix:s"
	w.run(t, "health").says(t, exitOK, "ready\n", "")
	delete(w.env, "CRONLATCH_LISTEN")
	w.write(t, "listen: unix:s\njobs: {}\n")
	w.run(t, "health").says(t, exitOK, "ready\n", "")
	gone := w.run(t, "health", "--server", "unix:gone")
	assert.Equal(t, exitUnavailable, gone.code)
	assert.True(t, strings.HasPrefix(gone.errors, "cronlatch: no answer from unix:gone /readyz: "), gone.errors)
}
