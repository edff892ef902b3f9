package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// hosts are the names beside loopback's that the Host header may have; in lower case, without port.
type hosts map[string]bool

func newHosts(names []string) hosts {
	h := hosts{}
	for _, name := range names {
		h[hostName(name)] = true
	}
	return h
}

// allow refuses names that are not this listener's: a page whose name was rebound to 127.0.0.1 sends its own name.
// Without a known local address (a test) the rule of loopback holds. A socket in the file system is out of reach for a
// page, and its clients have no name to send.
func (h hosts) allow(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && local.Network() == "unix" {
		return true
	}
	if len(h) == 0 && local != nil && !isLoopback(local) {
		return true
	}
	name := hostName(r.Host)
	if name == "localhost" || h[name] {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

func isLoopback(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err != nil || at.Addr().Unmap().IsLoopback() // an address of a kind that is not known gets the strict rule
}

// hostName drops the port and the brackets of an IPv6 address.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}
