package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/cronlatch/cronlatch/internal/address"
	"github.com/cronlatch/cronlatch/jobs"
)

const (
	maxAnswerBytes = 64 << 10 // of the body; more is not read
	maxHeaderBytes = 64 << 10
)

// errURL says nothing of the URL: that may be a secret.
var errURL = errors.New("the URL is not one of http or https")

// outgoing is one request.
type outgoing struct {
	method       string
	url          jobs.Secret
	allowPrivate bool
	hint         string // what allows a private address
	header       map[string]string
	body         []byte
}

// exchange sends a request and reads the answer. Nothing is followed, no proxy of the environment is asked, and an address
// that is not public is refused unless it is allowed. An answer that is not 2xx is an error; no error has more of it than its
// number, and none has the URL.
func (o *outgoing) exchange(ctx context.Context) error {
	target, err := url.Parse(o.url.Reveal())
	if err != nil || target.Hostname() == "" || target.Scheme != "http" && target.Scheme != "https" {
		return errURL
	}
	req, err := http.NewRequestWithContext(ctx, o.method, target.String(), bytes.NewReader(o.body))
	if err != nil {
		return errURL
	}
	req.Header.Set("User-Agent", "cronlatch")
	for name, value := range o.header {
		req.Header.Set(name, value)
	}
	transport := o.transport(target.Hostname())
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("sending the request: %w", plainly(err))
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswerBytes)) // what it says does not matter
	if answer.StatusCode/100 == 2 {
		return nil
	}
	return refusedBy(answer, time.Now())
}

func (o *outgoing) transport(host string) *http.Transport {
	dialer := address.Dialer(host, o.hint, func(netip.Addr) bool { return o.allowPrivate })
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
}

// plainly is what of an error of the network may be shown: never the URL, and nothing that the other side has chosen.
func plainly(err error) error {
	if refused, ok := errors.AsType[*address.RefusedError](err); ok {
		return refused
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", tryTimeout)
	case errors.Is(err, context.Canceled):
		return errors.New("this replica is leaving")
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("the certificate is not trusted: %w", cert.Err)
	}
	return errors.New("the connection broke, or the answer was not one of HTTP")
}
