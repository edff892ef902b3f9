package executor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// maxHeaderBytes bounds the head of an answer, interim ones included.
const maxHeaderBytes = 64 << 10

// startHTTP makes the request of an attempt.
func (e *Executor) startHTTP(ctx context.Context, a jobs.Attempt) (scheduler.Process, error) {
	r, err := a.HTTPRequest()
	if err != nil {
		return nil, &jobs.StartError{ExitCode: 126, Message: err.Error()}
	}
	return e.start(ctx, &a, func(ctx context.Context, t *jobs.Task) error { return exchange(ctx, a.Job.HTTP, r, t) })
}

// exchange sends one request and judges the answer. A run is one request: nothing is followed, and nothing repeated.
func exchange(ctx context.Context, h *jobs.HTTP, r jobs.HTTPRequest, t *jobs.Task) error {
	req, err := request(ctx, r)
	if err != nil {
		return &jobs.WorkError{Reason: jobs.ReasonStart, Err: err}
	}
	transport := transport(h, req.URL.Hostname())
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return &jobs.WorkError{Reason: jobs.ReasonStart, Err: fmt.Errorf("sending the request: %w", withoutURL(err))}
	}
	defer func() { _ = resp.Body.Close() }()
	masks := secretsOf(r)
	masks.writeHead(t, resp)
	body, more, err := readBody(resp.Body, h.MaxBody)
	_, _ = io.WriteString(t, masks.hide(string(body)))
	if more {
		_, _ = fmt.Fprintf(t, "\n[the rest of the body was not read: max_body is %d bytes]\n", h.MaxBody)
	}
	return judge(h.Expect, resp.StatusCode, body, err)
}

// judge is nil for an expected answer. The status goes first: the body of an error page breaking off is not the news.
func judge(want jobs.Expect, status int, body []byte, broken error) error {
	switch {
	case !want.AllowsStatus(status):
		return &jobs.WorkError{Reason: jobs.ReasonHTTPStatus, Err: fmt.Errorf("the status %d is not an expected one", status)}
	case broken != nil:
		return &jobs.WorkError{Reason: jobs.ReasonHTTPBody, Err: fmt.Errorf("reading the body: %w", broken)}
	case want.Body != nil && !want.Body.Match(body):
		return &jobs.WorkError{Reason: jobs.ReasonHTTPBody, Err: errors.New("the body does not match expect.body")}
	}
	return nil
}

func request(ctx context.Context, r jobs.HTTPRequest) (*http.Request, error) {
	var body io.Reader
	if r.Body != "" {
		body = strings.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", withoutURL(err))
	}
	req.GetBody = nil // what may have been sent is not sent again
	req.Header.Set("User-Agent", "cronlatch")
	for _, h := range r.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	return req, nil
}

// transport is the client of one request: no proxy of the environment sees it or goes around the dialer's look at the
// address, the connection is nobody else's, and a compressed answer is not inflated.
func transport(h *jobs.HTTP, host string) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            guarded(h, host).DialContext,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
}

// readBody reads up to limit bytes; more says that there were others.
func readBody(r io.Reader, limit int) (body []byte, more bool, err error) {
	body, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(body) > limit {
		return body[:limit], true, nil
	}
	return body, false, err
}

// withoutURL is the error without the URL that net/http puts in front: it may hold credentials.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
