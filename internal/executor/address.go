package executor

import (
	"net"
	"net/netip"

	"github.com/cronlatch/cronlatch/internal/address"
	"github.com/cronlatch/cronlatch/jobs"
)

// guarded dials for one job.
func guarded(h *jobs.HTTP, host string) *net.Dialer {
	return address.Dialer(host, "the job's http.allow can name the host or the network", func(addr netip.Addr) bool {
		return h.AllowsHost(host) || h.AllowsAddress(addr)
	})
}
