package httplock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

const (
	// callTimeout bounds one request whose context has no earlier end: more than the server allows itself.
	callTimeout = 15 * time.Second
	dialTimeout = 5 * time.Second
	// idleTimeout is shorter than the server's, so that a request does not meet a connection that is being closed.
	idleTimeout = 30 * time.Second
)

// Options say where the server is and who asks.
type Options struct {
	// URL of the server: http://127.0.0.1:8420, https://locks.example, or unix:/run/cronlatch.sock. It may have a path,
	// for a server behind a proxy; not a user, a query or a fragment.
	URL string
	// Token is sent with every request; "" sends none, for a server without authentication. It is sent as it is: over
	// http to another machine, everybody on the way can read it.
	Token string
	// HTTP is used instead of a client of its own when it is not nil, for certificates or a proxy; redirects are not
	// followed all the same. For a unix: URL its transport must dial the socket by itself, unless it is nil.
	HTTP *http.Client
}

// Client is the lock table behind a server, as a locking.Store. It is safe for concurrent use. The package comment says
// what a server cannot tell.
type Client struct {
	locking.Store

	http *http.Client
}

// New returns a client. It sends nothing.
func New(o Options) (*Client, error) {
	base, socket, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("httplock: the token has a space or a character that no token has")
	}
	h := httpClient(o.HTTP, socket)
	return &Client{Store: locking.Checked(&remote{base: base, token: o.Token, http: h}), http: h}, nil
}

// Close closes the connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// parseURL returns the base of all requests, without a slash at its end, and the path of the socket of a unix: URL.
// Its errors do not repeat the URL: somebody may have written a password into it.
func parseURL(raw string) (base *url.URL, socket string, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, "", errors.New("httplock: the server's URL is not a URL")
	}
	switch {
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, "", errors.New("httplock: the server's URL must not have a user, a query or a fragment")
	case u.Scheme == "unix":
		socket = u.Path
		if socket == "" {
			socket = u.Opaque
		}
		if socket == "" || u.Host != "" {
			return nil, "", errors.New("httplock: the server's URL has no path of a socket (unix:/run/cronlatch.sock)")
		}
		return &url.URL{Scheme: "http", Host: "localhost"}, socket, nil
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "", fmt.Errorf("httplock: the server's URL begins with %q and not with http:, https: or unix", u.Scheme+":")
	case u.Hostname() == "":
		return nil, "", errors.New("httplock: the server's URL has no host (http://127.0.0.1:8420)")
	}
	u.RawPath = strings.TrimRight(u.EscapedPath(), "/")
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, "", errors.New("httplock: the path of the server's URL is not well-formed")
	}
	return u, "", nil
}

// httpClient copies given, so that its owner's stays as it is, and never follows a redirect: a lock that somebody else
// answers for is not this lock.
func httpClient(given *http.Client, socket string) *http.Client {
	h := new(http.Client)
	if given != nil {
		*h = *given
	}
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	h.Jar = nil
	if h.Transport == nil {
		h.Transport = transport(socket)
	}
	return h
}

// transport uses no proxy from the environment: a variable that was set for web pages must not send lock tokens away.
func transport(socket string) *http.Transport {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: idleTimeout}
	dial := d.DialContext
	if socket != "" {
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }
	}
	return &http.Transport{
		DialContext:         dial,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleTimeout,
		MaxIdleConnsPerHost: maxCalls,
	}
}
