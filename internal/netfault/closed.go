package netfault

import (
	"net"
	"strconv"
	"syscall"
	"testing"
)

// ClosedPort is an address of 127.0.0.1 on which nothing listens until the end of the test: a socket that does not listen
// has it. A port that was free a moment ago may be somebody else's by now.
func ClosedPort(tb testing.TB) string {
	tb.Helper()
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		tb.Fatalf("netfault: opening a socket: %v", err)
	}
	tb.Cleanup(func() {
		if err := syscall.Close(fd); err != nil {
			tb.Errorf("netfault: closing a socket: %v", err)
		}
	})
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		tb.Fatalf("netfault: binding a socket: %v", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		tb.Fatalf("netfault: asking a socket for its port: %v", err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port)) //nolint:forcetypeassert // an AF_INET socket
}
