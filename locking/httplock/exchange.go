package httplock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// request is one exchange with the server.
type request struct {
	method string
	path   string // escaped, below the base
	query  string
	body   body // not of a GET
	want   int  // the status of success
	limit  int64
}

// do sends a request once, and decodes a successful answer into v unless v is nil. A *StatusError is an answer of the
// server (or of what stands in front of it); all else leaves the outcome unknown.
func (r *remote) do(ctx context.Context, q request, v any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := r.newRequest(ctx, &q)
	if err != nil {
		return err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the server: %w", withoutURL(err))
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	text, err := read(resp.Body, max(q.limit, maxTextAnswer))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != q.want:
		return problemOf(resp, text)
	case v == nil:
		return nil
	case !hasType(resp, "application/json"):
		return errors.New("the answer is not JSON; is the server cronlatch?")
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

func (r *remote) newRequest(ctx context.Context, q *request) (*http.Request, error) {
	u := *r.base
	u.RawPath += q.path
	u.RawQuery = q.query
	var err error
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	var text io.Reader
	if q.method != http.MethodGet {
		text = bytes.NewReader(q.body.encode())
	}
	req, err := http.NewRequestWithContext(ctx, q.method, "", text)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.URL, req.Host = &u, u.Host
	if text != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", "cronlatch-httplock")
	return req, nil
}

// read refuses what is longer than limit: an answer must not fill the memory of who asked.
func read(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("read the answer: it is longer than %d bytes", limit)
	}
	return text, nil
}

// withoutURL takes off what net/http puts around the cause: the request is named already, and a user's name for the
// server is none of a log's business.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
