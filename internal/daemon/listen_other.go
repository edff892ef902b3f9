//go:build !unix

package daemon

import (
	"context"
	"errors"
	"net"
)

func listenUnix(context.Context, string) (net.Listener, error) {
	return nil, errors.New("this platform has no Unix sockets with an owner")
}
