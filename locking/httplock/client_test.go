package httplock_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/netfault"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/httplock"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"http://127.0.0.1:8420", "https://locks.example/", "http://[::1]:1", "https://proxy.example/team/locks/", "unix:/run/x.sock",
		"unix:///run/x.sock", "unix:x.sock",
	} {
		_, err := httplock.New(httplock.Options{URL: good})
		require.NoError(t, err, good)
	}
	for _, bad := range []string{
		"", "127.0.0.1:8420", "localhost:8420", "ftp://x", "http://", "http:///x", "http://user:secret@x", "http://x?token=secret",
		"http://x#secret", "http://x?", "unix:", "unix://host/x", "http://x\x7f", "http://%zz", "postgres://u:secret@h/db",
	} {
		_, err := httplock.New(httplock.Options{URL: bad})
		require.Error(t, err, bad)
		assert.NotContains(t, err.Error(), "secret")
	}
	for _, bad := range []string{"a b", "a\n", "ü", "cl_x_y\r\nX: y"} {
		_, err := httplock.New(httplock.Options{URL: "http://x", Token: bad})
		require.Error(t, err)
	}
}

// One name is one path, whatever is in it and whatever is in front of it.
func TestPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "a/b", "../x", "a/../b", "//", "a b", "100%", "%2F", "?x=1", "#x", "ä", "a;b", "...", "+", "a\\b"} {
		for _, base := range []string{"", "/", "/behind/a%20proxy", "/x%2Fy/"} {
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.URL.EscapedPath()
				assert.Empty(t, r.URL.RawQuery)
				w.WriteHeader(http.StatusNoContent)
			}))
			c := client(t, server.URL+base)
			_, err := c.ForceRelease(t.Context(), locking.Force{Resource: name, FencingToken: 1, Reason: "x"})
			require.NoError(t, err)
			prefix := strings.TrimRight(base, "/") + "/locks/"
			require.True(t, strings.HasPrefix(got, prefix), got)
			segment := strings.TrimPrefix(got, prefix)
			assert.Equal(t, 1, strings.Count(segment, "/"), "%q is one segment of %s", name, got)
			server.Close()
		}
	}
}

// What is sent is what the protocol says, byte for byte.
func TestRequests(t *testing.T) {
	t.Parallel()
	var got []string
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		assert.Equal(t, "Bearer cl_ci_secret", r.Header.Get("Authorization"))
		if r.Method != http.MethodGet {
			assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
			assert.True(t, json.Valid(body))
		}
		got = append(got, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		w.WriteHeader(http.StatusTeapot)
	}), as("cl_ci_secret"))
	ctx := t.Context()
	_, _ = c.Acquire(ctx, []locking.AcquireRequest{{Resource: "a/b", Owner: `<"é">`, TTL: 1500 * time.Millisecond, Metadata: json.RawMessage(`{"z" : 1.50}`)}})
	_, _ = c.Renew(ctx, []locking.Claim{{Resource: "a", Owner: "A", TTL: locking.MinTTL, FencingToken: 3}})
	_, _ = c.Renew(ctx, []locking.Claim{{Resource: "a", Owner: "A", TTL: locking.MaxTTL}})
	_, _ = c.Release(ctx, []locking.Claim{{Resource: "a", Owner: "A", TTL: time.Minute}})
	_, _ = c.Get(ctx, "a")
	_, _ = c.List(ctx, locking.ListFilter{Prefix: "a&b", Owner: "A+", State: locking.StateExpired, Limit: 3})
	_, _ = c.ForceRelease(ctx, locking.Force{Resource: "a", FencingToken: 3, Reason: "stuck", Actor: "ann", Replica: "r", Immediate: true})
	_, _ = c.ForceRelease(ctx, locking.Force{Resource: "a", FencingToken: 3})
	assert.Equal(t, []string{
		`POST /locks/a%2Fb {"owner":"\u003c\"é\"\u003e","ttl_seconds":2,"metadata":{"z" : 1.50}}`,
		`POST /locks/a/renew {"owner":"A","fencing_token":3,"ttl_seconds":1}`,
		`POST /locks/a/renew {"owner":"A","ttl_seconds":86400}`,
		`DELETE /locks/a {"owner":"A"}`,
		`GET /locks/a `,
		`GET /locks?limit=3&owner=A%2B&prefix=a%26b&state=expired `,
		`POST /locks/a/force-release {"fencing_token":3,"reason":"stuck","immediate":true}`,
		`POST /locks/a/force-release {"fencing_token":3,"reason":""}`,
	}, got)
}

// What the protocol has no word for is refused before anything is sent.
func TestWhatCannotBeSaid(t *testing.T) {
	t.Parallel()
	c := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("something was sent") }))
	ctx := t.Context()
	for _, q := range []locking.AcquireRequest{
		{Owner: "A", Grace: time.Second}, {Owner: "A", Principal: "ann"}, {Owner: " A"}, {Owner: "A\u00a0"},
	} {
		q.Resource, q.TTL = "a", time.Second
		_, err := c.Acquire(ctx, []locking.AcquireRequest{q})
		require.ErrorIs(t, err, locking.ErrInvalid, "%+v", q)
	}
	for _, claim := range []locking.Claim{{Owner: "A", Principal: "ann"}, {Owner: "A "}} {
		claim.Resource, claim.TTL = "a", time.Second
		_, err := c.Renew(ctx, []locking.Claim{claim})
		require.ErrorIs(t, err, locking.ErrInvalid)
		_, err = c.Release(ctx, []locking.Claim{claim})
		require.ErrorIs(t, err, locking.ErrInvalid)
	}
	_, err := c.List(ctx, locking.ListFilter{Owner: "A "})
	require.ErrorIs(t, err, locking.ErrInvalid)
	_, err = c.Purge(ctx, time.Hour, 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = c.Now(ctx)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "hl-") //nolint:usetesting // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	path := filepath.Join(dir, "s")
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{ //nolint:gosec // on a socket of the test
		Handler: httpapi.New(httpapi.Options{Locks: lockingtest.NewMemory(bootClock)}),
	}}
	server.Start()
	t.Cleanup(server.Close)
	c := client(t, "unix:"+path)
	res, err := c.Acquire(t.Context(), []locking.AcquireRequest{{Resource: "a", Owner: "A", TTL: time.Minute}})
	require.NoError(t, err)
	assert.True(t, res[0].Acquired)
}

func TestNoRequestIsRepeatedAndNoRedirectFollowed(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	given := &http.Client{Timeout: time.Minute} // which would follow
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/locks/a", http.StatusPermanentRedirect)
	}), func(o *httplock.Options) { o.HTTP = given })
	for call, err := range calls(t.Context(), c) {
		require.Error(t, err, call)
	}
	assert.Equal(t, int64(6), requests.Load(), "one for each call")
	assert.Nil(t, given.CheckRedirect, "the caller's client stays as it is")
}

// A call ends soon after its context, although the server does not answer.
func TestAHangingServer(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is seen
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, err := c.Renew(ctx, []locking.Claim{{Resource: "a", Owner: "A", TTL: time.Second}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, locking.ErrLost)
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	for call, err := range calls(t.Context(), client(t, "http://"+netfault.ClosedPort(t))) {
		require.ErrorContains(t, err, "ask the server", call)
		assert.NotContains(t, err.Error(), "http://", "the URL is the caller's")
	}
}
