package database

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"
)

// errTLS marks a failure of encryption: sslmode prefer and allow go on without or with it.
var errTLS = errors.New("TLS")

// sslRequest asks a PostgreSQL server for TLS; it answers S or N.
const sslRequest = 80877103

const (
	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3
	// userTimeout is how long sent data may stay unacknowledged before the kernel gives the connection up.
	userTimeout = keepAliveIdle + keepAliveCount*keepAliveInterval
)

// dial opens the socket and, as the attempt says, TLS on it. TLS is done here and not by pgdriver, so that the wire is
// above it: it can then follow the protocol, and close without TLS's own waiting.
func (c *connector) dial(ctx context.Context, h host, a attempt) (*wire, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
		},
		ControlContext: setUserTimeout,
	}
	network, addr := h.address()
	socket, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: socket, socket: socket, host: h.String()}
	if a == plain {
		return w, nil
	}
	secured, err := c.encrypt(ctx, h, socket)
	if errors.Is(err, errNoTLS) && a == tlsIfHas {
		return w, nil
	}
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	w.Conn = secured
	return w, nil
}

var errNoTLS = fmt.Errorf("%w: the server does not offer it", errTLS)

func (c *connector) encrypt(ctx context.Context, h host, socket net.Conn) (net.Conn, error) {
	conf, err := c.target.tls.config(h)
	if err != nil {
		return nil, err
	}
	offered, err := askTLS(ctx, socket)
	if err != nil {
		return nil, fmt.Errorf("asking the server for TLS: %w", err)
	}
	if !offered {
		return nil, errNoTLS
	}
	secured := tls.Client(socket, conf)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("%w handshake: %w", errTLS, err)
	}
	return secured, nil
}

// askTLS sends the request and reads exactly one byte: whatever somebody put behind it in plain text reaches the TLS
// handshake, which refuses it (CVE-2021-23222).
func askTLS(ctx context.Context, socket net.Conn) (bool, error) {
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(past) })
	defer stop()
	var request [8]byte
	binary.BigEndian.PutUint32(request[:], uint32(len(request)))
	binary.BigEndian.PutUint32(request[4:], sslRequest)
	if _, err := socket.Write(request[:]); err != nil {
		return false, errors.Join(ctx.Err(), err)
	}
	var answer [1]byte
	if _, err := socket.Read(answer[:]); err != nil {
		return false, errors.Join(ctx.Err(), err)
	}
	switch answer[0] {
	case 'S':
		return true, nil
	case 'N':
		return false, nil
	default:
		return false, errors.New("the answer is not PostgreSQL's")
	}
}
