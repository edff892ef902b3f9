package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// api is the HTTP API as commands use it: that of the server which --server names or, without one, the same handler in this
// process, straight on the database. A command has one code for both.
type api struct {
	base   *url.URL
	token  string
	client *http.Client
	where  string // "the server http://...", for messages
	remote bool
}

// withAPI opens what the flag, the environment or the file names, and calls f; its context lasts as long as the command's
// patience. A command that waits for longer takes its own context, and bounds each call.
func (a *app) withAPI(ctx context.Context, flag string, f func(ctx context.Context, c *api) error) error {
	s, err := a.server(flag)
	if err != nil {
		return err
	}
	if s != nil {
		calls, cancel := context.WithTimeout(ctx, a.Patience)
		defer cancel()
		return f(calls, &api{base: s.URL, token: s.Token, client: s.Client, where: "the server " + s.String(), remote: true})
	}
	return a.withDatabase(ctx, func(ctx context.Context, db *database.DB) error {
		c, err := a.directAPI(db)
		if err != nil {
			return err
		}
		return f(ctx, c)
	})
}

// directAPI is the API on a database, with the jobs of the configuration where one can be read.
func (a *app) directAPI(db *database.DB) (*api, error) {
	store, err := locking.NewStore(db.Main)
	if err != nil {
		return nil, err
	}
	fleet := &httpapi.Fleet{DB: db.Main, Check: db.CheckFile, TTL: locking.DefaultTTL, Now: a.Now}
	if config, unreadable := a.loadConfig(); unreadable == nil {
		fleet.TTL, fleet.Jobs = config.Lock.TTL, knownOf(config)
		fleet.History = func() jobs.History { return config.History }
	}
	handler := httpapi.New(httpapi.Options{Locks: store, Fleet: fleet, Actor: requester(), TestChannel: a.channelTester()})
	return &api{
		base: &url.URL{Scheme: "http", Host: "localhost"}, client: &http.Client{Transport: inProcess{handler}},
		where: "the database " + db.Target.String(),
	}, nil
}

func knownOf(config *configs.Config) func() []*jobs.Job {
	return func() []*jobs.Job { return config.Jobs }
}

// get reads what is under a path. path is escaped already; into is a pointer.
func (c *api) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.call(ctx, http.MethodGet, path, query, nil, into)
}

// post sends a document; into is a pointer, or nil when the answer has no body.
func (c *api) post(ctx context.Context, path string, body, into any) error {
	return c.call(ctx, http.MethodPost, path, nil, body, into)
}

func (c *api) call(ctx context.Context, method, path string, query url.Values, body, into any) error {
	answer, err := c.do(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fail(exitFailure, "%s answered with what this version does not understand: %w", c.where, err)
	}
	return nil
}

// do makes one call; an answer that is not 2xx is an error: an *problemError where the server says what is wrong.
func (c *api) do(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var sent io.Reader
	if body != nil {
		doc, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding a request: %w", err)
		}
		sent = bytes.NewReader(doc)
	}
	target := *c.base
	target.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, target.String(), sent)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	full := c.base.JoinPath().EscapedPath()
	if full == "/" {
		full = ""
	}
	r.URL.RawPath = full + path
	if r.URL.Path, err = url.PathUnescape(r.URL.RawPath); err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, unreachable(c.where, err)
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	return nil, c.refused(answer)
}

// problemError is an answer that is not the wanted one.
type problemError struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Errors []struct {
		Field   string `json:"field"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
	RunID int64 `json:"run_id"` // of the run that is in the way; 0 is none
}

func (p *problemError) Error() string {
	parts := []string{p.Detail}
	for _, e := range p.Errors {
		parts = append(parts, e.Field+" "+e.Message)
	}
	return strings.Join(parts, "; ")
}

// maxProblem is more than any problem has.
const maxProblem = 64 << 10

// refused finds the exit code of an answer that is not the wanted one.
func (c *api) refused(answer *http.Response) error {
	p := &problemError{}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxProblem)).Decode(p); err != nil || p.Code == "" {
		return fail(exitFailure, "%s answered %s, and not as a cronlatch daemon does", c.where, answer.Status)
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return denied(c.where, p)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return unreachable(c.where, p)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return &failure{code: exitUsage, err: p}
	default:
		return &failure{code: exitFailure, err: p}
	}
}

// isProblem reports whether err is an answer with this code.
func isProblem(err error, code string) bool {
	p, ok := errors.AsType[*problemError](err)
	return ok && p.Code == code
}

// inProcess answers requests by a handler, without a listener.
type inProcess struct{ handler http.Handler }

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &heldAnswer{header: http.Header{}, status: http.StatusOK}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	t.handler.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.status, Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), Header: w.header,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// heldAnswer is the answer of a handler in memory.
type heldAnswer struct {
	header http.Header
	status int
	begun  bool
	body   bytes.Buffer
}

func (w *heldAnswer) Header() http.Header { return w.header }

func (w *heldAnswer) WriteHeader(status int) {
	if !w.begun {
		w.status, w.begun = status, true
	}
}

func (w *heldAnswer) Write(p []byte) (int, error) {
	w.begun = true
	return w.body.Write(p)
}
