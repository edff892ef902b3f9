package netfault

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// link is one client's connection and its other half.
type link struct {
	proxy *Proxy
	gone  chan struct{} // closed by cut

	mu     sync.Mutex
	client *net.TCPConn
	server *net.TCPConn // nil until the target was dialed
	isCut  bool
}

// serve joins the client to the target until both directions have ended.
func (l *link) serve() {
	defer l.close()
	if !l.await(func(s state) bool { return !s.blackHole }) || !l.dial() {
		l.cut()
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() { l.pump(l.server, l.client, true) })
	l.pump(l.client, l.server, false)
	answers.Wait()
}

func (l *link) dial() bool {
	var d net.Dialer
	c, err := d.DialContext(l.proxy.ctx, "tcp", l.proxy.target)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = c.(*net.TCPConn) //nolint:forcetypeassert // dialed as tcp
	if l.isCut {
		reset(l.server)
	}
	return !l.isCut
}

// pump carries one direction until it ends, and passes its end on.
func (l *link) pump(from, to *net.TCPConn, answers bool) {
	const size = 32 << 10
	buf := make([]byte, size)
	for {
		n, err := from.Read(buf)
		if !l.forward(to, buf[:n], answers) {
			l.cut()
			return
		}
		if err == nil {
			continue
		}
		if !l.await(func(s state) bool { return !s.blackHole && (!s.dropAnswers || !answers) }) {
			return
		}
		if errors.Is(err, io.EOF) {
			_ = to.CloseWrite() // the other side may have closed too
			return
		}
		l.cut() // a reset
		return
	}
}

// forward writes a piece as soon as the state lets it pass, or drops it. It is false when the link has ended.
func (l *link) forward(to *net.TCPConn, piece []byte, answers bool) bool {
	came := time.Now()
	for len(piece) > 0 {
		s := l.proxy.current()
		early := s.delay - time.Since(came)
		switch {
		case s.blackHole:
			if !l.pause(s, nil) {
				return false
			}
		case s.dropAnswers && answers:
			return true
		case early > 0:
			if !l.pause(s, time.After(early)) {
				return false
			}
		default:
			n, ok := l.write(to, piece, s)
			if !ok {
				return false
			}
			piece = piece[n:]
		}
	}
	return true
}

// write sends what it can while s lasts. It never holds up a change of the state for longer than patience.
func (l *link) write(to *net.TCPConn, piece []byte, s state) (n int, ok bool) {
	const patience = 50 * time.Millisecond
	l.proxy.mu.RLock()
	defer l.proxy.mu.RUnlock()
	if l.proxy.state.over != s.over {
		return 0, true
	}
	if to.SetWriteDeadline(time.Now().Add(patience)) != nil {
		return 0, false
	}
	n, err := to.Write(piece)
	return n, err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// await waits for a state that is good, and is false when the link has ended before.
func (l *link) await(good func(state) bool) bool {
	for {
		s := l.proxy.current()
		if good(s) {
			return true
		}
		if !l.pause(s, nil) {
			return false
		}
	}
}

// pause waits for the end of the state or the timer, and is false when the link has ended before.
func (l *link) pause(s state, timer <-chan time.Time) bool {
	select {
	case <-s.over:
		return true
	case <-timer:
		return true
	case <-l.gone:
		return false
	case <-l.proxy.ctx.Done():
		return false
	}
}

// cut resets both halves.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return
	}
	l.isCut = true
	close(l.gone)
	reset(l.client)
	if l.server != nil {
		reset(l.server)
	}
}

// close ends both halves in peace.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// reset closes with RST in place of FIN: nothing waits to be sent.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
