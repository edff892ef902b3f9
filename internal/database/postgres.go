package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"
)

// readBuffer must hold the longest field of a server's error: pgdriver loses the whole error, SQLSTATE included, when
// it does not fit. Beyond it, frames still has the head of the error.
const readBuffer = 32 << 10

// connector opens guarded connections for one pool. The host that worked last is tried first.
type connector struct {
	target pgTarget
	app    string
	limit  time.Duration // of a call
	pooled func()        // called when a connection turned out to lead to a pooler
	last   atomic.Int64  // index of the host that worked last
}

var _ driver.Connector = (*connector)(nil)

// Driver implements driver.Connector. It exists because it must: a guarded connection needs the connector.
func (c *connector) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

func (noDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("database: connections come from Open alone")
}

// Connect implements driver.Connector: the first host in turn that answers, and accepts writes if it must.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	hosts := c.target.hosts
	first := int(c.last.Load())
	var errs []error
	for i := range hosts {
		at := (first + i) % len(hosts)
		conn, err := c.connectHost(ctx, hosts[at], len(hosts)-i)
		if err == nil {
			c.last.Store(int64(at))
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", hosts[at], err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, &connectError{errs: errs}
}

// connectHost tries the ways of the host's sslmode. It takes its share of the context's time, so that a black hole
// leaves time for the hosts after it.
func (c *connector) connectHost(ctx context.Context, h host, hostsLeft int) (driver.Conn, error) {
	limit := c.target.connectTimeout
	if d, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(d)/time.Duration(hostsLeft))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var errs []error
	for _, a := range h.mode.attempts() {
		conn, err := c.connectOnce(ctx, h, a)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
		if !wantsOtherTLS(err) {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// wantsOtherTLS reports whether the attempt failed because of TLS or its absence: the handshake, or the server's rules
// (pg_hba.conf) for connections of this kind.
func wantsOtherTLS(err error) bool {
	return errors.Is(err, errTLS) || SQLState(err) == "28000"
}

func (c *connector) connectOnce(ctx context.Context, h host, a attempt) (driver.Conn, error) {
	w, err := c.dial(ctx, h, a)
	if err != nil {
		return nil, err
	}
	if err := w.begin(ctx, c.target.connectTimeout); err != nil {
		_ = w.Close()
		return nil, err
	}
	raw, err := pgdriver.NewConnector(c.driverOptions(h, w)).Connect(ctx)
	w.end()
	if err != nil {
		w.poison()
		_ = w.Close() // pgdriver leaks it when the startup fails
		return nil, describeStartup(ctx, err)
	}
	conn := &conn{raw: raw.(*pgdriver.Conn), wire: w, limit: c.limit}
	if err := c.setup(ctx, conn); err != nil {
		conn.discard()
		return nil, err
	}
	conn.prepares = true
	return conn, nil
}

func describeStartup(ctx context.Context, err error) error {
	var pg pgdriver.Error
	if ctx.Err() != nil && !errors.As(err, &pg) {
		return fmt.Errorf("waiting for the server's greeting: %w", ctx.Err())
	}
	return fmt.Errorf("starting the session: %w", err)
}

// driverOptions leave pgdriver only the protocol: the connection is dialed, encrypted, timed and set up here.
func (c *connector) driverOptions(h host, w *wire) pgdriver.Option {
	return func(conf *pgdriver.Config) {
		conf.Network, conf.Addr = h.address()
		conf.User, conf.Password, conf.Database = c.target.user, h.password.Reveal(), c.target.database
		conf.AppName = c.app
		conf.TLSConfig = nil
		conf.BufferSize = readBuffer
		conf.EnableTracing = false
		conf.Dialer = func(context.Context, string, string) (net.Conn, error) { return w, nil }
	}
}
