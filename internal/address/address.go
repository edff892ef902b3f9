// Package address knows which addresses of the network are public, and dials no others unless it is told to: the one rule for
// requests of jobs, webhooks and pings.
//
// The address is looked at when the socket is about to connect, so it does not matter what a name led to before. Not
// guaranteed: that a public address belongs to who its name says; that is for TLS.
package address

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// refused are the networks that a request may not reach unless it is allowed: this host, this network, and what is
// no single public host. Sources: the special-purpose registries of RFC 6890, and the addresses where clouds hand out
// credentials. Of IPv6 only 2000::/3 is public at all.
//
//nolint:gochecknoglobals // a closed list
var refused = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // Azure: a public address that every virtual machine can reach
	"2001::/23",        // protocol assignments; Teredo carries an IPv4 address
	"2001:db8::/32", "3fff::/20",
	"2002::/16", // 6to4 carries an IPv4 address
)

//nolint:gochecknoglobals // constants
var (
	public6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Plain is the address that is really reached: an IPv4 address inside an IPv6 one (mapped, or translated by a NAT64 of
// an IPv6-only network) is that IPv4 address.
func Plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if nat64.Contains(addr) {
		b := addr.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}

// Public reports whether the address is that of a host on the internet.
func Public(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	addr = Plain(addr)
	if addr.Is6() && !public6.Contains(addr) {
		return false
	}
	for _, p := range refused {
		if p.Contains(addr) {
			return false
		}
	}
	return true
}

// RefusedError is an address that is not public and that nobody has allowed.
type RefusedError struct {
	host string
	addr netip.Addr
	hint string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the address %s of %s is not public; %s", e.addr, e.host, e.hint)
}

// Dialer connects to public addresses, and to those that allowed knows. The address is looked at when the socket is about to
// connect to it: between a look at a name and its use, the name may lead elsewhere. hint is the way out, for the error.
func Dialer(host, hint string, allowed func(netip.Addr) bool) *net.Dialer {
	return &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("reading the address to connect to: %w", err)
		}
		addr := at.Addr()
		if Public(addr) || allowed(Plain(addr.WithZone(""))) {
			return nil
		}
		return &RefusedError{host, addr, hint}
	}}
}
