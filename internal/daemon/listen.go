package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/configs"
)

const unixScheme = "unix:"

// endpoint is a listener and how clients call it.
type endpoint struct {
	net.Listener

	url string // http://127.0.0.1:8420, https://[::]:8420, unix:/run/cronlatch.sock
}

// listen opens the listener of the configuration.
func listen(ctx context.Context, c *configs.Config, log *zap.Logger) (*endpoint, error) {
	if path, ok := strings.CutPrefix(c.Listen, unixScheme); ok {
		path = c.File(path)
		l, err := listenUnix(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("listening on %s: %w", path, err)
		}
		return &endpoint{l, unixScheme + path}, nil
	}
	var certs *certificates
	if c.TLS.Enabled() { // before the port is taken
		var err error
		if certs, err = loadCertificates(c.File(c.TLS.Cert), c.File(c.TLS.Key), log); err != nil {
			return nil, err
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", c.Listen, err)
	}
	if onlyThisMachine(c.Listen) && !onlyThisMachine(l.Addr().String()) {
		return nil, closeWith(l, fmt.Errorf("listening on %s: that is %s here, which others can reach", c.Listen, l.Addr()))
	}
	if certs == nil {
		return &endpoint{l, "http://" + l.Addr().String()}, nil
	}
	return &endpoint{tls.NewListener(l, certs.config()), "https://" + l.Addr().String()}, nil
}

func closeWith(l net.Listener, err error) error {
	_ = l.Close() // the error to report is another one
	return err
}
