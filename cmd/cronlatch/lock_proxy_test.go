package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/netfault"
)

// lockProxy is a rig whose database is behind a network that can break.
type lockProxy struct {
	*netfault.Proxy

	rig *lockRig
}

func proxied(t *testing.T, direct *lockRig) lockProxy {
	t.Helper()
	address := strings.TrimPrefix(direct.env[0], "DATABASE_URL=")
	server, err := url.Parse(address)
	require.NoError(t, err)
	proxy := netfault.Listen(t, server.Host)
	behind := *direct
	behind.env = []string{"DATABASE_URL=" + strings.Replace(address, server.Host, proxy.Addr(), 1)}
	return lockProxy{proxy, &behind}
}
