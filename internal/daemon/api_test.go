package daemon

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// served is a daemon whose API the test calls.
type served struct {
	*booted

	url    string
	login  []Login
	log    *observer.ObservedLogs
	client *http.Client
}

// serve boots a daemon with a change to its options.
func serve(t *testing.T, url, yaml string, change func(*Options)) *served {
	t.Helper()
	o, b := options(t, url, yaml)
	s := &served{booted: b, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	core, lines := observer.New(zapcore.DebugLevel)
	s.log, o.Log = lines, zap.New(core)
	ready := make(chan string, 1)
	o.Started = func(url string, _ []string) { ready <- url }
	o.Login = func(l Login) { s.login = append(s.login, l) }
	if change != nil {
		change(&o)
	}
	d, err := New(o)
	require.NoError(t, err)
	var ctx context.Context
	ctx, b.stop = context.WithCancel(t.Context())
	go func() { b.ended <- d.Run(ctx) }()
	select {
	case s.url = <-ready:
		b.addr = strings.TrimPrefix(s.url, "http://")
	case err := <-b.ended:
		require.NoError(t, err, "the daemon ended instead of starting")
	case <-time.After(patience):
		require.Fail(t, "the daemon did not start")
	}
	return s
}

// acquire asks for a lock and returns the status and the body.
func (s *served) acquire(t *testing.T, token string) (status int, body string) {
	t.Helper()
	base := s.url
	if strings.HasPrefix(base, "unix:") {
		base = "http://localhost"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/locks/x", strings.NewReader(`{"owner": "me", "ttl_seconds": 30}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, string(text)
}

// silent checks that the token is in no line of the log and of the audit.
func (s *served) silent(t *testing.T, token string) {
	t.Helper()
	require.NotEmpty(t, token)
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"})
	for _, line := range append(s.log.All(), s.audit.All()...) {
		text, err := encoder.EncodeEntry(line.Entry, line.Context)
		require.NoError(t, err)
		assert.NotContains(t, text.String(), token)
	}
}

// A fresh daemon lets in the bearer of the token that it made, and nobody else.
func TestAFreshDaemonHasAnAdmin(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		dir := t.TempDir()
		beside := func(o *Options) { o.Config.Dir = dir }
		first := serve(t, url, "jobs: {}\n", beside)
		require.Len(t, first.login, 1)
		l := first.login[0]
		assert.Equal(t, filepath.Join(dir, "cronlatch.token"), l.Path)
		assert.Equal(t, auth.AdminCreated, l.State)
		kept, err := auth.ReadFile(l.Path)
		require.NoError(t, err)
		assert.Equal(t, l.Token, kept)

		status, body := first.acquire(t, l.Token)
		assert.Equal(t, http.StatusOK, status, body)
		status, _ = first.acquire(t, "")
		assert.Equal(t, http.StatusUnauthorized, status)
		other, err := auth.New(auth.AdminID)
		require.NoError(t, err)
		status, _ = first.acquire(t, other)
		assert.Equal(t, http.StatusUnauthorized, status)
		assert.Equal(t, http.StatusOK, first.status(t, "/readyz"), "health needs no token")

		second := serve(t, url, "jobs: {}\n", beside)
		assert.Equal(t, []Login{{AdminToken: auth.AdminToken{State: auth.AdminHere}, Path: l.Path}}, second.login, "shown once")
		elsewhere := serve(t, url, "jobs: {}\n", nil)
		assert.Equal(t, auth.AdminElsewhere, elsewhere.login[0].State)
		assert.NoFileExists(t, elsewhere.login[0].Path)
		for _, d := range []*served{second, elsewhere} {
			status, body := d.acquire(t, l.Token)
			assert.Equal(t, http.StatusOK, status, body)
		}
		for _, d := range []*served{first, second, elsewhere} {
			d.leave(t)
			d.silent(t, l.Token)
		}
	})
}

// A token of the table, and its end, on a replica that runs.
func TestTokensOfARunningDaemon(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		d := serve(t, url, "jobs: {}\n", nil)
		defer d.leave(t)
		table, err := auth.OpenStore(dbtest.Open(t, url).Main)
		require.NoError(t, err)
		token, err := auth.New("ci")
		require.NoError(t, err)
		eventually := func(want int) {
			t.Helper()
			require.Eventually(t, func() bool { status, _ := d.acquire(t, token); return status == want }, patience, 50*time.Millisecond)
		}
		eventually(http.StatusUnauthorized)
		require.NoError(t, table.Create(t.Context(), auth.Creation{ID: "ci", Hash: auth.Hash(token), Role: auth.Locker, Actor: "me"}))
		eventually(http.StatusOK)
		require.NoError(t, table.Revoke(t.Context(), "ci", "me"))
		eventually(http.StatusUnauthorized)
	})
}

func TestConfiguredTokens(t *testing.T) {
	t.Parallel()
	ops, err := auth.New("ops")
	require.NoError(t, err)
	board, err := auth.New("board")
	require.NoError(t, err)
	d := serve(t, dbtest.SQLiteURL(t), `
auth:
  tokens:
    - {id: ops, role: admin, sha256: "`+auth.Hash(ops)+`"}
    - {id: board, role: viewer, sha256: "`+auth.Hash(board)+`"}
jobs: {}
`, nil)
	defer d.leave(t)
	assert.Empty(t, d.login, "there is an admin already: nothing is made, nothing is said")
	status, body := d.acquire(t, ops)
	assert.Equal(t, http.StatusOK, status, body)
	status, _ = d.acquire(t, board)
	assert.Equal(t, http.StatusForbidden, status)
}

func TestWithoutAuthentication(t *testing.T) {
	t.Parallel()
	d := serve(t, dbtest.SQLiteURL(t), "auth: none\njobs: {}\n", nil)
	defer d.leave(t)
	assert.Empty(t, d.login)
	status, body := d.acquire(t, "")
	assert.Equal(t, http.StatusOK, status, body)
}

// Jobs run although no token can be kept; nobody is let in.
func TestAReadOnlyFolderStopsNoJobs(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	d := serve(t, url, "auth: {token_file: no/such/folder/token}\n"+everySecond, nil)
	defer d.leave(t)
	require.Len(t, d.login, 1)
	require.ErrorIs(t, d.login[0].Err, auth.ErrFile)
	status, _ := d.acquire(t, "")
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.Equal(t, jobs.OutcomeSucceeded, waitForRuns(t, url, 1)[0].Outcome)
}

func TestTheAPIOverTLS(t *testing.T) {
	t.Parallel()
	dir, pair := t.TempDir(), newKeyPair(t, "one")
	pair.write(t, dir)
	d := serve(t, dbtest.SQLiteURL(t), "auth: none\ntls: {cert: tls.crt, key: tls.key}\njobs: {}\n",
		func(o *Options) { o.Config.Dir = dir })
	defer d.leave(t)
	assert.True(t, strings.HasPrefix(d.url, "https://127.0.0.1:"), d.url)
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pair.roots(t)}}
	d.client.Transport = transport
	status, body := d.acquire(t, "")
	assert.Equal(t, http.StatusOK, status, body)

	next := newKeyPair(t, "two")
	next.write(t, dir)
	transport.TLSClientConfig = &tls.Config{RootCAs: next.roots(t)}
	require.Eventually(t, func() bool {
		resp, err := d.client.Get(d.url + "/healthz") //nolint:noctx // bounded by Eventually
		return err == nil && resp.Body.Close() == nil
	}, patience, 50*time.Millisecond, "the new certificate, without a restart")

	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: next.roots(t), MaxVersion: tls.VersionTLS11}}}
	_, err := old.Get(d.url + "/healthz") //nolint:noctx,bodyclose // it fails
	require.Error(t, err)
}

func TestTheAPIOnAUnixSocket(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	path := filepath.Join(dir, "s")
	abandon(t, path)
	d := serve(t, dbtest.SQLiteURL(t), "auth: none\njobs: {}\n", func(o *Options) { o.Config.Dir, o.Config.Listen = dir, "unix:s" })
	assert.Equal(t, "unix:"+path, d.url)
	d.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	status, body := d.acquire(t, "")
	assert.Equal(t, http.StatusOK, status, body)
	d.leave(t)
	_, err := os.Lstat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A lock must not be given away in a file that others no longer see.
func TestADeletedDatabaseFileAnswersNoLock(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	d := serve(t, url, "auth: none\njobs: {}\n", nil)
	require.NoError(t, os.Remove(strings.TrimPrefix(url, "sqlite:")))
	status, body := d.acquire(t, "")
	assert.Equal(t, http.StatusServiceUnavailable, status, body)
	d.stop()
	<-d.ended
}
