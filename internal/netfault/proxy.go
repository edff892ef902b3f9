// Package netfault is a TCP proxy for tests that breaks the network between two programs on one machine.
//
// Model: a Proxy listens on 127.0.0.1 and joins every connection to a target. What happens to the bytes is one state
// for all of its connections, old and new, changed at any time by BlackHole, DropAnswers, Delay and Refuse, and back to
// normal by Restore. CutAll is not a state but an event.
//
// Guarantees: when BlackHole, DropAnswers or Refuse has returned, no byte is forwarded any more that they forbid; what had
// been forwarded before stays so. What a black hole held back arrives in order after Restore, as TCP would repeat it;
// what DropAnswers swallowed never arrives. A closed or reset connection is passed on like bytes: not through a black
// hole. The test's end closes everything and waits for it.
//
// Non-guarantees: a black hole still completes the TCP handshake of new connections (the kernel does), so a client notices
// it at its first read and not when it dials. Delay delays pieces, not bytes: one that streams gets slower too.
//
// Failure handling: when the target refuses, the client's connection is reset. A port that cannot be opened again after
// Refuse fails the test.
//
// How to test: go test ./internal/netfault needs nothing else.
package netfault

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between clients and one target. Its methods may be called from any goroutine.
type Proxy struct {
	target string
	addr   string
	report func(format string, args ...any)
	ctx    context.Context // ends with the test
	work   sync.WaitGroup

	mu       sync.RWMutex // held for reading while a piece is written, so that a change waits for it
	state    state
	listener net.Listener // nil while refusing
	links    map[*link]struct{}
	accepted int
}

// state is what happens to the bytes, from one change to the next.
type state struct {
	blackHole   bool
	dropAnswers bool
	delay       time.Duration
	over        chan struct{} // closed when this state ends
}

// Listen starts a proxy in front of target (host:port), closed at the end of the test.
func Listen(tb testing.TB, target string) *Proxy {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	p := &Proxy{
		target: target, report: tb.Errorf, ctx: ctx,
		state: state{over: make(chan struct{})}, links: map[*link]struct{}{},
	}
	l, err := listenLow(ctx)
	if err != nil {
		cancel()
		tb.Fatalf("netfault: listening: %v", err)
	}
	p.addr = l.Addr().String()
	p.mu.Lock()
	p.open(l)
	p.mu.Unlock()
	tb.Cleanup(func() {
		p.Refuse()
		cancel()
		p.CutAll()
		p.work.Wait()
	})
	return p
}

// Addr is where clients connect to. It never changes.
func (p *Proxy) Addr() string { return p.addr }

// Accepted counts the connections since the start.
func (p *Proxy) Accepted() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.accepted
}

// BlackHole keeps connections and accepts new ones, and forwards nothing in either direction.
func (p *Proxy) BlackHole() { p.change(func(s *state) { s.blackHole = true }) }

// DropAnswers forwards what clients send and swallows what the target answers. The connections are out of step for ever:
// before Restore, CutAll is usual.
func (p *Proxy) DropAnswers() { p.change(func(s *state) { s.dropAnswers = true }) }

// Delay holds every piece back for d before it is forwarded: a round trip takes twice as long.
func (p *Proxy) Delay(d time.Duration) { p.change(func(s *state) { s.delay = d }) }

// Refuse refuses new connections, as a machine does on which nothing listens. Those that the proxy has accepted go on;
// CutAll ends them.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return
	}
	if err := p.listener.Close(); err != nil {
		p.report("netfault: closing the listener: %v", err)
	}
	p.listener = nil
}

// Restore ends every fault: bytes flow at once, and new connections are accepted.
func (p *Proxy) Restore() {
	p.change(func(s *state) { *s = state{} })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.ctx.Err() != nil {
		return
	}
	l, err := listen(p.ctx, p.addr)
	if err != nil {
		p.report("netfault: listening again: %v", err)
		return
	}
	p.open(l)
}

// CutAll resets every connection on both sides (RST). New ones are welcome.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// change gives a state its successor and wakes those who wait in it.
func (p *Proxy) change(edit func(*state)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.state
	edit(&p.state)
	p.state.over = make(chan struct{})
	close(old.over)
}

func (p *Proxy) current() state {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.state
}

// open starts to accept; p.mu is held.
func (p *Proxy) open(l net.Listener) {
	p.listener = l
	p.work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // Refuse has closed it
			}
			p.accept(client.(*net.TCPConn)) //nolint:forcetypeassert // of a TCP listener
		}
	})
}

func (p *Proxy) accept(client *net.TCPConn) {
	l := &link{proxy: p, client: client, gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		l.cut()
		return
	}
	p.accepted++
	p.links[l] = struct{}{}
	p.work.Go(func() {
		l.serve()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
}
