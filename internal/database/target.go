package database

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Kind is the database product.
type Kind string

// The databases that cronlatch runs on.
const (
	Postgres Kind = "postgres"
	SQLite   Kind = "sqlite"
)

// Target is a parsed and checked database URL: where the database is and how to reach it. The zero Target is
// nothing; Parse and Resolve make one. Printing it never shows the password.
type Target struct {
	Kind Kind
	// Path is SQLite's file, absolute or relative to the working directory. Empty on PostgreSQL.
	Path string
	pg   pgTarget
}

// pgTarget is the PostgreSQL half of a Target.
type pgTarget struct {
	hosts          []host
	user           string
	database       string
	appName        string
	searchPath     string
	tls            tlsFiles
	connectTimeout time.Duration // of one attempt at one host
	readWrite      bool          // skip servers that do not accept writes
}

// host is one server of a Target with what applies to it alone.
type host struct {
	name     string // name or address; the directory of a Unix socket
	port     string
	mode     sslMode
	password Password
}

func (h host) unix() bool { return strings.HasPrefix(h.name, "/") }

// local hosts are reached without leaving the machine: a Unix socket, localhost or a loopback address.
func (h host) local() bool {
	if h.unix() || h.name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(h.name)
	return err == nil && addr.IsLoopback()
}

// address returns the network and the address to dial.
func (h host) address() (network, addr string) {
	if h.unix() {
		return "unix", h.name + "/.s.PGSQL." + h.port
	}
	return "tcp", net.JoinHostPort(h.name, h.port)
}

func (h host) String() string {
	_, addr := h.address()
	return addr
}

// String is the target as a URL, with *** in the place of a password.
func (t Target) String() string {
	switch t.Kind {
	case SQLite:
		return "sqlite:" + t.Path
	case Postgres:
		return t.pg.String()
	default:
		return ""
	}
}

func (p pgTarget) String() string {
	var b strings.Builder
	b.WriteString("postgres://" + url.PathEscape(p.user))
	if len(p.hosts) > 0 && p.hosts[0].password.IsSet() {
		b.WriteString(":" + masked)
	}
	b.WriteByte('@')
	for i, h := range p.hosts {
		if i > 0 {
			b.WriteByte(',')
		}
		if h.unix() {
			b.WriteString(url.PathEscape(h.name) + ":" + h.port)
			continue
		}
		b.WriteString(h.String())
	}
	b.WriteString("/" + url.PathEscape(p.database))
	if len(p.hosts) > 0 {
		b.WriteString("?sslmode=" + string(p.hosts[0].mode))
	}
	return b.String()
}

// GoString is String: %#v must not show more.
func (t Target) GoString() string { return t.String() }

// Format prints String for every verb.
func (t Target) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// MarshalText is String, for JSON and zap.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
