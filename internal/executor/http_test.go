package executor

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/jobs"
)

const canary = "hunter2-canary"

func httpExecutor() *Executor { return New(Options{Boot: boottime.Now}) }

// serve answers with handler; the URL is one on loopback.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func httpJob(url string) *jobs.Job {
	return &jobs.Job{Name: "a", HTTP: &jobs.HTTP{
		Method: "GET", URL: url, MaxBody: 1024, Allow: []string{"127.0.0.1"}, Expect: jobs.Expect{Status: []jobs.StatusRange{{From: 200, To: 299}}},
	}}
}

func TestARequestIsSentAsTheJobSays(t *testing.T) {
	t.Parallel()
	requests := make(chan *http.Request, 1)
	bodies := make(chan string, 1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- r
		bodies <- string(body)
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Set-Cookie", "session="+canary)
		w.Header().Set("Location", "/?token="+canary)
		_, _ = fmt.Fprintf(w, "hello %s and %s", r.Header.Get("Authorization"), r.URL.Query().Get("key"))
	})
	job := httpJob(url + "/{{ .Resource }}?key=" + canary)
	job.HTTP.Method, job.HTTP.Body = "POST", "r={{ .Resource }}"
	job.HTTP.Headers = []jobs.Header{{Name: "Authorization", Value: "Bearer " + canary}, {Name: "Content-Type", Value: "text/x"}}
	a := attempt(job)
	a.Run.Resource = "a/b"
	got := ended(t, start(t, httpExecutor(), a))

	assert.Equal(t, jobs.CauseExited, got.Cause)
	assert.Zero(t, got.ExitCode)
	assert.Empty(t, got.Reason)
	r := <-requests
	assert.Equal(t, "POST /a%2Fb?key="+canary, r.Method+" "+r.RequestURI)
	assert.Equal(t, "r=a/b", <-bodies)
	assert.Equal(t, "Bearer "+canary, r.Header.Get("Authorization"))
	assert.Equal(t, "text/x", r.Header.Get("Content-Type"))
	assert.Equal(t, "7", r.Header.Get("Idempotency-Key"))
	assert.Equal(t, "42", r.Header.Get("X-Cronlatch-Fencing-Token"))
	assert.Equal(t, "cronlatch", r.Header.Get("User-Agent"))
	out := string(got.Output.Head)
	assert.True(t, strings.HasPrefix(out, "HTTP/1.1 200 OK\n"), out)
	for _, part := range []string{"Content-Type: text/plain\n", "Set-Cookie: ***\n", "Location: ***\n", "\n\nhello *** and ***"} {
		assert.Contains(t, out, part)
	}
	assert.NotContains(t, out, canary)
}

func TestHowAnAnswerIsJudged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		handler http.HandlerFunc
		change  func(*jobs.HTTP)
		reason  jobs.Reason
		output  string
	}{
		"204": {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, output: "HTTP/1.1 204 No Content\n"},
		"500": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "broken disk", http.StatusInternalServerError)
			},
			reason: jobs.ReasonHTTPStatus, output: "broken disk\nthe status 500 is not an expected one\n",
		},
		"an expected 404": {
			handler: http.NotFound,
			change:  func(h *jobs.HTTP) { h.Expect.Status = []jobs.StatusRange{{From: 404, To: 404}} },
		},
		"a body that matches": {
			handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok": true}`) },
			change:  func(h *jobs.HTTP) { h.Expect.Body = regexp.MustCompile(`"ok": *true`) },
		},
		"a body that does not match": {
			handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok": false}`) },
			change:  func(h *jobs.HTTP) { h.Expect.Body = regexp.MustCompile(`"ok": *true`) },
			reason:  jobs.ReasonHTTPBody, output: `{"ok": false}` + "\nthe body does not match expect.body\n",
		},
		"a body that breaks off": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = io.WriteString(w, "half")
			},
			reason: jobs.ReasonHTTPBody, output: "half\nreading the body: ",
		},
		"a body beyond the limit": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("x", 1024)+"secret")
			},
			output: "xxx\n[the rest of the body was not read: max_body is 1024 bytes]\n",
		},
		"no answer": {
			handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			reason:  jobs.ReasonStart, output: "sending the request: EOF\n",
		},
		"a head without end": {
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeaderBytes))
			},
			reason: jobs.ReasonStart,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := httpJob(serve(t, test.handler))
			if test.change != nil {
				test.change(job.HTTP)
			}
			got := ended(t, start(t, httpExecutor(), attempt(job)))
			assert.Equal(t, jobs.CauseExited, got.Cause)
			assert.Equal(t, test.reason, got.Reason)
			assert.Equal(t, test.reason != "", got.ExitCode != 0)
			assert.Contains(t, string(got.Output.Head), test.output)
			assert.NotContains(t, string(got.Output.Head), "secret")
		})
	}
}

// TestNoRedirectIsFollowed: the job names one host, and an answer must not choose another.
func TestNoRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	other := serve(t, func(http.ResponseWriter, *http.Request) { followed.Store(true) })
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusFound) })
	got := ended(t, start(t, httpExecutor(), attempt(httpJob(url))))
	assert.Equal(t, jobs.ReasonHTTPStatus, got.Reason)
	assert.False(t, followed.Load())
}

// TestALocalAddressIsRefused also when a name leads there, and nothing is sent.
func TestALocalAddressIsRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	url := serve(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	for _, url := range []string{url, strings.Replace(url, "127.0.0.1", "localhost", 1), strings.Replace(url, "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		job := httpJob(url + "/?token=" + canary)
		job.HTTP.Allow = []string{"10.0.0.0/8", "example.com"}
		got := ended(t, start(t, httpExecutor(), attempt(job)))
		assert.Equal(t, jobs.ReasonStart, got.Reason, url)
		assert.Contains(t, string(got.Output.Head), "is not public", url)
		assert.NotContains(t, string(got.Output.Head), canary, url)
	}
	assert.False(t, reached.Load())

	job := httpJob(strings.Replace(url, "127.0.0.1", "localhost", 1))
	job.HTTP.Allow = []string{"LOCALHOST"}
	assert.Empty(t, ended(t, start(t, httpExecutor(), attempt(job))).Reason)
	assert.True(t, reached.Load())
}

// TestTheEnvironmentHasNoProxy would reach the refused address through the proxy instead.
//
//nolint:paralleltest // it sets variables
func TestTheEnvironmentHasNoProxy(t *testing.T) {
	var asked atomic.Bool
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { asked.Store(true) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy)
	}
	job := httpJob("http://192.0.2.1/")
	got := ended(t, start(t, httpExecutor(), attempt(job)))
	assert.Contains(t, string(got.Output.Head), "192.0.2.1 of 192.0.2.1 is not public")
	assert.False(t, asked.Load())
	assert.Nil(t, transport(job.HTTP, "192.0.2.1").Proxy)
}

// TestARequestEndsWithItsRun: a receiver that hangs holds nothing back.
func TestARequestEndsWithItsRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*jobs.Attempt)
		stop bool
		want jobs.Cause
	}{
		"stopped":         {stop: true, want: jobs.CauseStopped},
		"the timeout":     {end: func(a *jobs.Attempt) { a.Job.Timeout = 1 }, want: jobs.CauseTimeout},
		"the lock's time": {end: func(a *jobs.Attempt) { a.StopAt = boottime.Now() + inTime }, want: jobs.CauseDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			came, gone := make(chan struct{}, 1), make(chan struct{}, 1)
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush() // the head is there: the body hangs
				came <- struct{}{}
				<-r.Context().Done()
				gone <- struct{}{}
			})
			a := attempt(httpJob(url))
			if test.end != nil {
				test.end(&a)
			}
			p := start(t, httpExecutor(), a)
			if test.stop {
				<-came
				p.Stop()
			}
			got := ended(t, p)
			assert.Equal(t, test.want, got.Cause)
			assert.Empty(t, got.Reason)
			if test.stop {
				<-gone // and the receiver sees that nobody waits
			}
		})
	}
}

func TestARequestThatCannotBeMade(t *testing.T) {
	t.Parallel()
	job := httpJob("http://127.0.0.1:1/?key=" + canary) // nobody listens on port 1
	got := ended(t, start(t, httpExecutor(), attempt(job)))
	assert.Equal(t, jobs.ReasonStart, got.Reason)
	assert.Contains(t, string(got.Output.Head), "connection refused")
	assert.NotContains(t, string(got.Output.Head), canary)

	a := attempt(job)
	a.StopAt = 0
	p, err := httpExecutor().Start(t.Context(), a)
	require.Nil(t, p)
	var refused *jobs.StartError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, jobs.ReasonStaleStart, refused.Lost)
}
