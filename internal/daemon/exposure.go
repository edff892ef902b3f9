package daemon

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/cronlatch/cronlatch/configs"
)

// ExposedError refuses a listener that would let in whom nobody wanted to let in.
type ExposedError struct {
	Reason string // a sentence
	Remedy string // what to do, a sentence
}

func (e *ExposedError) Error() string { return e.Reason }

// checkExposure is the rule of what may listen where. What only this machine can reach (loopback, a Unix socket) may do as
// it likes; any other address needs authentication, and TLS unless a proxy in front does that.
func checkExposure(c *configs.Config) error {
	switch {
	case onlyThisMachine(c.Listen):
		return nil
	case c.Auth.None:
		return &ExposedError{
			Reason: fmt.Sprintf("listen: %s can be reached from other machines, and auth: none lets everybody in", c.Listen),
			Remedy: "remove auth: none (an admin token is generated then), or listen on 127.0.0.1, [::1] or unix:PATH",
		}
	case !c.TLS.Enabled() && !c.BehindProxy:
		return &ExposedError{
			Reason: fmt.Sprintf("listen: %s can be reached from other machines, and tokens would cross the network in clear", c.Listen),
			Remedy: "set tls.cert and tls.key, or behind_proxy: true when a proxy in front ends TLS, or listen on 127.0.0.1, [::1] or unix:PATH",
		}
	default:
		return nil
	}
}

// onlyThisMachine reports whether an address to listen on is out of the others' reach.
func onlyThisMachine(listen string) bool {
	if strings.HasPrefix(listen, unixScheme) {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// CheckExposure says beforehand what New would refuse: an *ExposedError, or nil.
func CheckExposure(c *configs.Config) error { return checkExposure(c) }
