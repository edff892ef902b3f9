package netfault_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/netfault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = time.Minute
	// silence is how long a test listens for what must not come. Too short, it could miss a fault but never invent one.
	silence = 100 * time.Millisecond
)

// echo is a target that answers each line with the same line and keeps count of what it got.
type echo struct {
	addr  string
	lines chan string // every line received
	conns atomic.Int32
	ended chan error // how each connection ended
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := &echo{addr: listener.Addr().String(), lines: make(chan string, 100), ended: make(chan error, 100)}
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	work.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			e.conns.Add(1)
			work.Go(func() { e.ended <- e.serve(ctx, c) })
		}
	})
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, listener.Close())
		work.Wait()
	})
	return e
}

func (e *echo) serve(ctx context.Context, c net.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close() //nolint:errcheck // a test's connection
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e.lines <- line
		if _, err := io.WriteString(c, line); err != nil {
			return err
		}
	}
}

// client is a connection through the proxy.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &client{t: t, Conn: c, r: bufio.NewReader(c)}
}

func (c *client) send(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.Conn, line)
	require.NoError(c.t, err)
}

func (c *client) receive() (string, error) {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(patience)))
	return c.r.ReadString('\n')
}

func (c *client) expect(line string) {
	c.t.Helper()
	got, err := c.receive()
	require.NoError(c.t, err)
	require.Equal(c.t, line, got)
}

func (c *client) expectSilence() {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(silence)))
	_, err := c.r.Peek(1)
	require.ErrorIs(c.t, err, os.ErrDeadlineExceeded)
}

func TestForwards(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	p := netfault.Listen(t, e.addr)
	for range 3 {
		c := dial(t, p.Addr())
		c.send("a\n")
		c.expect("a\n")
		long := strings.Repeat("x", 1<<20) + "\n"
		c.send(long)
		c.expect(long)
		require.NoError(t, c.Close())
		require.NoError(t, <-e.ended, "the end is passed on")
	}
	assert.Equal(t, 3, p.Accepted())
}

func TestBlackHoleForwardsNothingUntilRestore(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	p := netfault.Listen(t, e.addr)
	old := dial(t, p.Addr())
	old.send("before\n")
	old.expect("before\n")
	require.Equal(t, "before\n", <-e.lines)

	p.BlackHole()
	old.send("old\n")
	fresh := dial(t, p.Addr())
	fresh.send("fresh\n")
	old.expectSilence()
	fresh.expectSilence()
	assert.Empty(t, e.lines, "the target must not see a byte")
	assert.EqualValues(t, 1, e.conns.Load(), "nor the new connection")

	p.Restore()
	old.expect("old\n")
	fresh.expect("fresh\n")
}

func TestBlackHoleKeepsTheEndOfAConnectionBack(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	p := netfault.Listen(t, e.addr)
	c := dial(t, p.Addr())
	c.send("a\n")
	c.expect("a\n")
	p.BlackHole()
	require.NoError(t, c.Close())
	select {
	case err := <-e.ended:
		t.Fatalf("the target saw the end through a black hole: %v", err)
	case <-time.After(silence):
	}
	p.Restore()
	require.NoError(t, <-e.ended)
}

// A client that does not read fills every buffer; a change of the state must not wait for it.
func TestBlackHoleDoesNotWaitForAFullBuffer(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	p := netfault.Listen(t, e.addr)
	c := dial(t, p.Addr())
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
	line := []byte(strings.Repeat("x", 1<<16) + "\n")
	for {
		select {
		case <-e.lines:
		default:
		}
		if _, err := c.Write(line); err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			break
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); p.BlackHole() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("BlackHole waits for a write")
	}
}

func TestCutAllResetsBothSides(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	for name, fault := range map[string]func(*netfault.Proxy){
		"healthy":      func(*netfault.Proxy) {},
		"black hole":   (*netfault.Proxy).BlackHole,
		"drop answers": (*netfault.Proxy).DropAnswers,
	} {
		p := netfault.Listen(t, e.addr)
		c := dial(t, p.Addr())
		c.send("a\n")
		c.expect("a\n")
		fault(p)
		p.CutAll()
		_, err := c.receive()
		require.ErrorIs(t, err, syscall.ECONNRESET, name)
		require.ErrorIs(t, <-e.ended, syscall.ECONNRESET, name)
		p.Restore()
		again := dial(t, p.Addr())
		again.send("b\n")
		again.expect("b\n")
		require.NoError(t, again.Close())
		require.NoError(t, <-e.ended)
	}
}

func TestDropAnswersForwardsOnlyRequests(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	p := netfault.Listen(t, e.addr)
	c := dial(t, p.Addr())
	p.DropAnswers()
	c.send("swallowed\n")
	require.Equal(t, "swallowed\n", <-e.lines)
	c.expectSilence()
	p.Restore()
	c.send("heard\n")
	c.expect("heard\n")
}

func TestDelay(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	p := netfault.Listen(t, e.addr)
	c := dial(t, p.Addr())
	const delay = 30 * time.Millisecond
	p.Delay(delay)
	sent := time.Now()
	c.send("a\n")
	c.expect("a\n")
	assert.GreaterOrEqual(t, time.Since(sent), 2*delay)

	p.Delay(time.Hour)
	c.send("b\n")
	c.expectSilence()
	p.Restore()
	c.expect("b\n")
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	p := netfault.Listen(t, e.addr)
	c := dial(t, p.Addr())
	c.send("accepted\n")
	c.expect("accepted\n")
	p.Refuse()
	p.Refuse()
	var d net.Dialer
	_, err := d.DialContext(t.Context(), "tcp", p.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	c.send("established\n")
	c.expect("established\n")
	p.Restore()
	dial(t, p.Addr()).send("a\n")
}

func TestClosedPort(t *testing.T) {
	t.Parallel()
	one, two := netfault.ClosedPort(t), netfault.ClosedPort(t)
	assert.NotEqual(t, one, two)
	var d net.Dialer
	_, err := d.DialContext(t.Context(), "tcp", one)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	var config net.ListenConfig
	_, err = config.Listen(t.Context(), "tcp", one)
	require.ErrorIs(t, err, syscall.EADDRINUSE, "nobody else gets it")
}

func TestTargetThatRefuses(t *testing.T) {
	t.Parallel()
	p := netfault.Listen(t, netfault.ClosedPort(t))
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", p.Addr())
	if err == nil { // the reset may be as fast as the handshake
		c := &client{t: t, Conn: conn, r: bufio.NewReader(conn)}
		_, err = c.receive()
		require.NoError(t, c.Close())
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestTheEndOfTheTestClosesEverything(t *testing.T) {
	t.Parallel()
	e := startEcho(t)
	var c *client
	t.Run("inner", func(t *testing.T) {
		p := netfault.Listen(t, e.addr)
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", p.Addr())
		require.NoError(t, err)
		c = &client{Conn: conn, r: bufio.NewReader(conn)}
		p.BlackHole()
		p.Delay(time.Hour)
	})
	c.t = t
	_, err := c.receive()
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, c.Close())
}
