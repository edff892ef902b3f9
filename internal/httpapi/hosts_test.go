package httpapi_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/httpapi"
)

func TestAllowedHosts(t *testing.T) {
	t.Parallel()
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8420}
	public := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8420}
	socket := &net.UnixAddr{Net: "unix", Name: "/run/cronlatch.sock"}
	for _, c := range []struct {
		allowed []string
		local   net.Addr
		host    string
		ok      bool
	}{
		{[]string{"locks.example.com"}, loopback, "locks.example.com", true},
		{[]string{"locks.example.com"}, loopback, "LOCKS.example.com:443", true},
		{[]string{"Locks.example.com:8420"}, loopback, "locks.example.com", true},
		{[]string{"locks.example.com"}, loopback, "localhost", true},
		{[]string{"locks.example.com"}, loopback, "evil.example", false},
		{[]string{"locks.example.com"}, loopback, "a.locks.example.com", false},
		{[]string{"locks.example.com"}, public, "locks.example.com:8420", true},
		{[]string{"locks.example.com"}, public, "evil.example", false},
		{[]string{"locks.example.com"}, public, "127.0.0.1:8420", true},
		{[]string{"2001:db8::1"}, public, "[2001:db8::1]:8420", true},
		{nil, public, "anything.example", true},
		{nil, public, "", true},
		{nil, socket, "anything", true},
		{nil, socket, "", true},
	} {
		r := request(t, http.MethodGet, "/healthz")
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.local))
		r.Host = c.host
		w := ask(httpapi.New(httpapi.Options{AllowedHosts: c.allowed}), r)
		assert.Equal(t, c.ok, w.Code == http.StatusOK, "%v at %s for %s", c.allowed, c.local, c.host)
	}
}
