//go:build !linux

package database

import (
	"context"
	"syscall"
)

// setUserTimeout has no counterpart here: keepalive alone finds a dead peer.
func setUserTimeout(context.Context, string, string, syscall.RawConn) error { return nil }
