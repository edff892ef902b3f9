package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

func locksInMemory() http.Handler {
	return httpapi.New(httpapi.Options{Locks: lockingtest.NewMemory(time.Now)})
}

const postHead = "POST /locks/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

// A body has 10 s from the start of the request, however it comes; what came of it by then is not acted on.
func TestASlowBodyOfALockIsCut(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"stops":                        postHead + "Content-Length: 100\r\n\r\n{",
		"chunked":                      postHead + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"whole object, more announced": postHead + "Content-Length: 100\r\n\r\n" + goodAcquire,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served(t, locksInMemory(), func(t *testing.T, p *pipes) {
				t.Helper()
				conn := p.dial()
				send(t, conn, head)
				said, passed := untilClosed(t, conn)
				assert.Equal(t, 10*time.Second, passed)
				assert.Contains(t, said, "408 Request Timeout")
				assert.Contains(t, said, `"code":"timeout"`)
			})
		})
	}
}

func TestADrippingBodyIsCut(t *testing.T) {
	t.Parallel()
	served(t, locksInMemory(), func(t *testing.T, p *pipes) {
		t.Helper()
		conn := p.dial()
		send(t, conn, postHead+"Content-Length: 1000\r\n\r\n")
		var dripping sync.WaitGroup
		dripping.Go(func() {
			for {
				if _, err := conn.Write([]byte(" ")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		said, passed := untilClosed(t, conn)
		assert.Equal(t, 10*time.Second, passed)
		assert.Contains(t, said, "408 Request Timeout")
		dripping.Wait()
	})
}

// A client that stops in the middle of a body and goes is not acted on either.
func TestAConnectionThatEndsInABody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := lockingtest.NewMemory(time.Now)
		p := listenPipes()
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- httpapi.Serve(ctx, p, httpapi.New(httpapi.Options{Locks: store})) }()
		conn := p.dial()
		send(t, conn, postHead+"Content-Length: 100\r\n\r\n"+goodAcquire)
		require.NoError(t, conn.Close())
		synctest.Wait()
		cancel()
		require.NoError(t, <-ended)
		_, err := store.Get(t.Context(), "x")
		assert.Error(t, err)
	})
}

// What net/http would answer by itself, or with a redirect, is the API's to answer.
func TestRequestsThatNetHTTPKnows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n":                     "404 Not Found",
		"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n":                  "421 Misdirected Request",
		"GET //locks HTTP/1.1\r\nHost: localhost\r\n":                   "404 Not Found",
		"GET /locks/../locks HTTP/1.1\r\nHost: localhost\r\n":           "404 Not Found",
		"GET /locks/%2e%2e HTTP/1.1\r\nHost: localhost\r\n":             "422 Unprocessable Entity",
		"GET /locks/x/%2e HTTP/1.1\r\nHost: localhost\r\n":              "404 Not Found",
		"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n":          "404 Not Found",
		"GET http://localhost/locks HTTP/1.1\r\nHost: evil.example\r\n": "200 OK", // RFC 9112: the target's host counts
		"GET http://evil.example/locks HTTP/1.1\r\nHost: localhost\r\n": "421 Misdirected Request",
		"GET /locks/%zz HTTP/1.1\r\nHost: localhost\r\n":                "400 Bad Request",
	} {
		served(t, locksInMemory(), func(t *testing.T, p *pipes) {
			t.Helper()
			conn := p.dial()
			send(t, conn, text+"Connection: close\r\n\r\n")
			said, _ := untilClosed(t, conn)
			status, _, _ := strings.Cut(said, "\r\n")
			assert.Equal(t, "HTTP/1.1 "+want, status, text)
			assert.NotContains(t, said, "Location:")
		})
	}
}
