package address_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/address"
)

func TestWhichAddressesArePublic(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "172.15.255.255", "172.32.0.0", "192.169.0.0", "100.63.255.255", "100.128.0.0", "223.255.255.255",
		"2606:4700::1111", "2a00::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1",
	} {
		assert.True(t, address.Public(netip.MustParseAddr(text)), text)
	}
	for _, text := range []string{
		// this host and this network
		"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "::", "::1",
		// private, shared, link-local, unique-local
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "169.254.1.1", "fe80::1", "fe80::1%eth0",
		"fc00::1", "fd12::1", "fec0::1",
		// where clouds keep credentials: AWS and others, AWS by IPv6, Alibaba, Azure, Oracle
		"169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		// the same in other forms
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1",
		"64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:7f00:1::",
		// nobody's, tests and documentation, multicast
		"192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "2001:db8::1", "3fff::1", "224.0.0.1", "255.255.255.255",
		"240.0.0.1", "ff02::1", "4000::1",
	} {
		assert.False(t, address.Public(netip.MustParseAddr(text)), text)
	}
	assert.False(t, address.Public(netip.Addr{}))
}
