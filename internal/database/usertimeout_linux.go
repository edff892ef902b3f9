package database

import (
	"context"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// setUserTimeout bounds how long the kernel keeps resending before it reports a dead peer (tcp(7)); by default a
// quarter of an hour.
func setUserTimeout(_ context.Context, network, _ string, rc syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var err error
	if ctrl := rc.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	}); ctrl != nil {
		return ctrl
	}
	return err
}
