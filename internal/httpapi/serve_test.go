package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
)

// pipes is a listener whose connections are in memory, so that a synctest bubble owns all time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func listenPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// served runs f in a bubble in which the handler is served.
func served(t *testing.T, h http.Handler, f func(t *testing.T, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p, ended := listenPipes(), make(chan error, 1)
		go func() { ended <- httpapi.Serve(ctx, p, h) }()
		f(t, p)
		cancel()
		require.NoError(t, <-ended)
	})
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

// untilClosed reads what the server still says and returns it with the time that passed.
func untilClosed(t *testing.T, c net.Conn) (string, time.Duration) {
	t.Helper()
	began := time.Now()
	said, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(said), time.Since(began)
}

const healthRequest = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

func TestSlowClientsAreCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sends string
		after time.Duration
	}{
		{"nothing at all", "", 5 * time.Second},
		{"half a request line", "GET /hea", 5 * time.Second},
		{"headers without an end", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n", 5 * time.Second},
		{"idle after an answer", healthRequest, 60 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			served(t, httpapi.New(httpapi.Options{}), func(t *testing.T, p *pipes) {
				t.Helper()
				conn := p.dial()
				send(t, conn, c.sends)
				_, passed := untilClosed(t, conn)
				assert.Equal(t, c.after, passed)
			})
		})
	}
}

// One byte every 4 s never lets the server wait 5 s for the next one, and is cut all the same.
func TestDrippingHeadersAreCut(t *testing.T) {
	t.Parallel()
	served(t, httpapi.New(httpapi.Options{}), func(t *testing.T, p *pipes) {
		t.Helper()
		conn := p.dial()
		var dripping sync.WaitGroup
		dripping.Go(func() {
			for _, b := range []byte(healthRequest) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(4 * time.Second)
			}
		})
		_, passed := untilClosed(t, conn)
		assert.Equal(t, 5*time.Second, passed)
		dripping.Wait()
	})
}

func TestSlowBodyIsCut(t *testing.T) {
	t.Parallel()
	served(t, httpapi.New(httpapi.Options{}), func(t *testing.T, p *pipes) {
		t.Helper()
		conn := p.dial()
		send(t, conn, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n1")
		said, passed := untilClosed(t, conn)
		assert.Contains(t, said, "405 Method Not Allowed")
		assert.LessOrEqual(t, passed, 15*time.Second)
	})
}

func TestHeaderLimitIs16KiB(t *testing.T) {
	t.Parallel()
	head, tail := "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Pad: ", "\r\nConnection: close\r\n\r\n"
	for size, want := range map[int]string{
		16 << 10:   "200 OK",
		16<<10 + 1: "431 Request Header Fields Too Large",
	} {
		served(t, httpapi.New(httpapi.Options{}), func(t *testing.T, p *pipes) {
			t.Helper()
			conn := p.dial()
			text := head + strings.Repeat("x", size-len(head)-len(tail)) + tail
			var sending sync.WaitGroup
			sending.Go(func() { _, _ = io.WriteString(conn, text) }) // the server may stop reading in the middle
			status, err := bufio.NewReader(conn).ReadString('\n')
			require.NoError(t, err)
			assert.Contains(t, status, want, size)
			require.NoError(t, conn.Close())
			sending.Wait()
		})
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	served(t, httpapi.New(httpapi.Options{}), func(t *testing.T, p *pipes) {
		t.Helper()
		conn := p.dial()
		send(t, conn, "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		said, _ := untilClosed(t, conn)
		head, body, found := strings.Cut(said, "\r\n\r\n")
		require.True(t, found)
		assert.Contains(t, head, "200 OK")
		assert.NotContains(t, head, "Server:")
		assert.Empty(t, body)
	})
}

// The check gets 3 s; one that obeys its context is answered as a timeout.
func TestASlowReadinessCheckIsCut(t *testing.T) {
	t.Parallel()
	h := httpapi.New(httpapi.Options{Ready: func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("asking the database: %w", ctx.Err())
	}})
	served(t, h, func(t *testing.T, p *pipes) {
		t.Helper()
		conn := p.dial()
		send(t, conn, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		said, passed := untilClosed(t, conn)
		assert.Equal(t, 3*time.Second, passed)
		assert.Contains(t, said, "503 Service Unavailable")
		assert.Contains(t, said, `"code":"timeout"`)
	})
}

func TestStopAnswersWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p, ended := listenPipes(), make(chan error, 1)
		asked := make(chan struct{})
		h := httpapi.New(httpapi.Options{Ready: func(ctx context.Context) error {
			close(asked)
			select {
			case <-time.After(2 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		go func() { ended <- httpapi.Serve(ctx, p, h) }()
		conn := p.dial()
		send(t, conn, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		<-asked
		cancel()
		said, _ := untilClosed(t, conn)
		assert.Contains(t, said, "200 OK")
		require.NoError(t, <-ended)
	})
}

// A handler that does not come back delays the end by 5 s, not for ever.
func TestStopDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p, ended, asked, release := listenPipes(), make(chan error, 1), make(chan struct{}), make(chan struct{})
		h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(asked)
			<-release
		})
		go func() { ended <- httpapi.Serve(ctx, p, h) }()
		conn := p.dial()
		send(t, conn, healthRequest)
		<-asked
		began := time.Now()
		cancel()
		require.NoError(t, <-ended)
		assert.Equal(t, 5*time.Second, time.Since(began))
		close(release)
		_, _ = io.ReadAll(conn)
	})
}

type brokenListener struct{ pipes }

func (*brokenListener) Accept() (net.Conn, error) { return nil, errors.New("listener broke") }

func TestABrokenListenerEndsServe(t *testing.T) {
	t.Parallel()
	l := &brokenListener{pipes: pipes{done: make(chan struct{})}}
	require.EqualError(t, httpapi.Serve(t.Context(), l, httpapi.New(httpapi.Options{})), "serving HTTP: listener broke")
}

func TestOverARealListener(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { ended <- httpapi.Serve(ctx, l, httpapi.New(httpapi.Options{})) })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for host, want := range map[string]int{"": http.StatusOK, "rebound.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String()+"/readyz", http.NoBody)
		require.NoError(t, err)
		r.Host = host
		res, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, want, res.StatusCode, host)
	}
	cancel()
	wg.Wait()
	require.NoError(t, <-ended)
}
