package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// server is a daemon as a client command reaches it.
type server struct {
	URL    *url.URL // the base of all paths; of a Unix socket it is http://localhost, and Client knows the socket
	Token  string   // for the Authorization header; "" when there is none
	Client *http.Client

	address string // as a person wrote it
}

// String is the address as a person wrote it.
func (s *server) String() string { return s.address }

// at is a path there, for messages.
func (s *server) at(path string) string {
	if strings.HasPrefix(s.address, "unix:") {
		return s.address + " " + path
	}
	return s.URL.JoinPath(path).String()
}

// server is the daemon that the flag or CRONLATCH_SERVER names; nil when neither does. The token is CRONLATCH_TOKEN, else
// the one in the daemon's token file: that one never leaves this machine.
func (a *app) server(flag string) (*server, error) {
	address := flag
	if address == "" {
		address = a.Getenv("CRONLATCH_SERVER")
	}
	if address == "" {
		return nil, nil //nolint:nilnil // the caller asks the database instead
	}
	s, err := a.connect(address, "")
	if err != nil {
		return nil, err
	}
	if s.Token, err = a.token(s); err != nil {
		return nil, err
	}
	return s, nil
}

// connect makes the client for an address, without a token. cacert is the file of the roots that sign the daemon's
// certificate; "" is CRONLATCH_CACERT, else the system's.
func (a *app) connect(address, cacert string) (*server, error) {
	s := &server{address: address}
	transport := &http.Transport{ // no proxy: HTTP_PROXY must not send a token elsewhere
		TLSHandshakeTimeout: a.Patience, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4,
	}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" {
			return nil, usage("%q is not an address like unix:/run/cronlatch.sock", address)
		}
		s.URL, transport.DialContext = &url.URL{Scheme: "http", Host: "localhost"}, toSocket(a.path(path))
	} else {
		var err error
		if s.URL, err = serverURL(address); err != nil {
			return nil, err
		}
		transport.DialContext = dialer(s.URL).DialContext
		if transport.TLSClientConfig, err = a.roots(cacert); err != nil {
			return nil, err
		}
	}
	s.Client = &http.Client{
		Transport: transport,
		Timeout:   a.Patience, // the API never waits for anything
		// A redirect would carry the token to wherever an answer says.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

func serverURL(address string) (*url.URL, error) {
	text := address
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, usage("%q is not an address like http://127.0.0.1:8420 or unix:/run/cronlatch.sock", address)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, usage("an address has no user, no query and no fragment; the token is in CRONLATCH_TOKEN")
	}
	return u, nil
}

func toSocket(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}

// local reports whether only this machine can be behind the address.
func local(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// dialer holds a local address to its word: the name localhost may resolve to anything.
func dialer(u *url.URL) *net.Dialer {
	if !local(u) {
		return &net.Dialer{}
	}
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().Unmap().IsLoopback() {
			return fmt.Errorf("%s is %s, which is not this machine", u.Hostname(), address)
		}
		return nil
	}}
}

// roots are the authorities that a daemon's certificate is held against.
func (a *app) roots(file string) (*tls.Config, error) {
	if file == "" {
		file = a.Getenv("CRONLATCH_CACERT")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return config, nil
	}
	pem, err := os.ReadFile(a.path(file))
	if err != nil {
		return nil, fail(exitConfig, "reading the roots: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fail(exitConfig, "%s holds no certificate in PEM form", file)
	}
	return config, nil
}
