package netfault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports lie below the ephemeral ranges of Linux (from 32768) and macOS (from 49152). From inside the range, a port
// could be given to an outgoing connection while its owner is down, even to one that then talks to itself.
const lowestPort, highestPort = 15000, 32000

// FreePort returns a TCP port of 127.0.0.1 on which nothing listens, for a program that will be stopped and started
// again on it. Another program may take it first: be ready to try again.
func FreePort(ctx context.Context) (int, error) {
	l, err := listenLow(ctx)
	if err != nil {
		return 0, err
	}
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0, err
	}
	return port, l.Close()
}

func listenLow(ctx context.Context) (l net.Listener, err error) {
	const attempts = 100
	for range attempts {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if l, err = listen(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("looking for a free port: %w", err)
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", addr)
}
