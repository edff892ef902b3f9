package httplock_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/locking/httplock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a listener on loopback and returns a client for it.
func serve(tb testing.TB, h http.Handler, change ...func(o *httplock.Options)) *httplock.Client {
	tb.Helper()
	server := httptest.NewServer(h)
	tb.Cleanup(server.Close)
	return client(tb, server.URL, change...)
}

func client(tb testing.TB, url string, change ...func(o *httplock.Options)) *httplock.Client {
	tb.Helper()
	o := httplock.Options{URL: url}
	for _, f := range change {
		f(&o)
	}
	c, err := httplock.New(o)
	require.NoError(tb, err)
	tb.Cleanup(c.Close)
	return c
}

// switchable is a server whose database can go away.
type switchable struct {
	http.Handler

	away atomic.Bool
}

func (s *switchable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.away.Load() {
		answering(http.StatusServiceUnavailable, problemJSON, `{"code":"database","detail":"away"}`).ServeHTTP(w, r)
		return
	}
	s.Handler.ServeHTTP(w, r)
}
