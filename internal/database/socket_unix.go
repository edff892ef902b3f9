//go:build unix

package database

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// alive looks at an idle connection without reading: the server's goodbye, its close or any other unasked byte means
// that it must not be used again.
func alive(socket net.Conn) bool {
	sc, ok := socket.(syscall.Conn)
	if !ok {
		return true
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	idle := false
	err = rc.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		idle = err == unix.EAGAIN || err == unix.EWOULDBLOCK
	})
	return err == nil && idle
}
