package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// token is in every URL of these tests, and nobody may print it.
const token = "canary-in-the-url"

// receiver keeps what it gets.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	got    []*http.Request
	bodies []string
}

func receive(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got, r.bodies = append(r.got, req), append(r.bodies, string(body))
		r.mu.Unlock()
		if answer != nil {
			answer(w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) secretURL() jobs.Secret { return jobs.Secret(r.URL + "/" + token + "?key=" + token) }

func event(n int) scheduler.Message {
	return scheduler.Message{
		ID: "id-" + strconv.Itoa(n), Event: jobs.EventFailure, Job: "backup", RunID: int64(n), Text: "backup failed " + strconv.Itoa(n),
	}
}

func events(n int) []scheduler.Message {
	list := make([]scheduler.Message, n)
	for i := range list {
		list[i] = event(i)
	}
	return list
}

func TestTheSignatureIsTheDocumentedOne(t *testing.T) {
	t.Parallel()
	got := Sign([]byte("s3cret"), time.Unix(1767225600, 0), []byte(`{"id":"a"}`))
	assert.Equal(t, "t=1767225600,v1=8394be05c30941efd99b5836eb9097576e942fc772133c171cb84b4e6a17a684", got)
}

func TestAWebhookIsSigned(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	ch := &jobs.Channel{Name: "ops", Webhook: &jobs.WebhookChannel{URL: r.secretURL(), Secret: "s3cret", AllowPrivate: true}}
	require.NoError(t, courier{}.send(t.Context(), ch, events(1)))
	require.NoError(t, courier{}.send(t.Context(), ch, events(60)))
	require.Len(t, r.got, 2)
	for i, n := range []int{1, 60} {
		var body webhookBody
		require.NoError(t, json.Unmarshal([]byte(r.bodies[i]), &body))
		assert.Len(t, body.Events, n, "all of them, however many")
		assert.Equal(t, body.ID, r.got[i].Header.Get("Cronlatch-Id"))
		assert.Equal(t, "application/json", r.got[i].Header.Get("Content-Type"))
		// as docs/notifications.md says
		at, sum, ok := strings.Cut(strings.TrimPrefix(r.got[i].Header.Get("Cronlatch-Signature"), "t="), ",v1=")
		require.True(t, ok)
		mac := hmac.New(sha256.New, []byte("s3cret"))
		mac.Write([]byte(at + "." + r.bodies[i]))
		assert.Equal(t, hex.EncodeToString(mac.Sum(nil)), sum)
		seconds, err := strconv.ParseInt(at, 10, 64)
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), time.Unix(seconds, 0), time.Minute)
	}
	assert.Equal(t, "id-0", r.got[0].Header.Get("Cronlatch-Id"), "a single one has its own id")
	assert.Equal(t, idOf(events(60)), r.got[1].Header.Get("Cronlatch-Id"))
	assert.NotEqual(t, idOf(events(60)), idOf(events(59)))

	ch.Webhook.Secret = ""
	require.NoError(t, courier{}.send(t.Context(), ch, events(1)))
	assert.Empty(t, r.got[2].Header.Get("Cronlatch-Signature"))
}

func TestSlackGetsText(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	ch := &jobs.Channel{Slack: &jobs.SlackChannel{URL: r.secretURL(), AllowPrivate: true}}
	evil := event(1)
	evil.Text = "<!channel> <https://evil.example|click> a&b @here *b* ~s~ `c` [x](https://evil.example)\n> quoted\x1b[31m"
	require.NoError(t, courier{}.send(t.Context(), ch, []scheduler.Message{evil, event(2)}))
	var body map[string]string
	require.NoError(t, json.Unmarshal([]byte(r.bodies[0]), &body))
	assert.Equal(t, map[string]string{"text": "[failure] &lt;!channel&gt; &lt;https:\u200b//evil.example|click&gt; a&amp;b @\u200bhere *\u200bb*\u200b " +
		"~\u200bs~\u200b `\u200bc`\u200b [x]\u200b(https:\u200b//evil.example)\\n&gt; quoted\\x1b[31m\n[failure] backup failed 2"}, body)

	require.NoError(t, courier{}.send(t.Context(), ch, events(53)))
	require.NoError(t, json.Unmarshal([]byte(r.bodies[1]), &body))
	list := strings.Split(body["text"], "\n")
	assert.Len(t, list, 51)
	assert.Equal(t, "and 3 more", list[50])

	long := event(1)
	long.Text = strings.Repeat("ä", 100_000)
	assert.Less(t, len(slackText([]scheduler.Message{long})), 31_000)
}

// Whatever goes wrong, what is said of it has nothing of the URL, and nothing that the other side has answered.
func TestErrorsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/"+token)
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, r.URL)
		}
	}
	for name, tt := range map[string]struct {
		url  jobs.Secret
		want string
	}{
		"404":               {receive(t, echo(404)).secretURL(), "the server answered 404"},
		"500":               {receive(t, echo(500)).secretURL(), "the server answered 500"},
		"redirect":          {receive(t, echo(302)).secretURL(), "the server answered 302, and redirects are not followed"},
		"refused":           {"http://127.0.0.1:1/" + token, "connection refused"},              // nobody listens on port 1
		"no such host":      {"http://no-such-host..invalid/" + token, "no-such-host..invalid"}, // no name at all: no server is asked
		"bad escape":        {"http://127.0.0.1/%zz" + token, errURL.Error()},
		"another scheme":    {"file:///etc/" + token, errURL.Error()},
		"without a host":    {"http:///" + token, errURL.Error()},
		"a broken answer":   {receive(t, hangUp).secretURL(), "the connection broke, or the answer was not one of HTTP"},
		"a password inside": {jobs.Secret("http://u:" + token + "@127.0.0.1:1/"), "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ch := range []jobs.Channel{
				{Webhook: &jobs.WebhookChannel{URL: tt.url, Secret: token, AllowPrivate: true}},
				{Slack: &jobs.SlackChannel{URL: tt.url, AllowPrivate: true}},
			} {
				err := courier{}.send(t.Context(), &ch, events(1))
				require.ErrorContains(t, err, tt.want)
				assert.NotContains(t, err.Error(), token)
			}
			err := ping(t.Context(), &jobs.Job{Ping: tt.url, PingAllowPrivate: true}, scheduler.PingSuccess, 7, "x")
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), token)
		})
	}
}

func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = conn.Write([]byte(token + "\r\n\r\n"))
		_ = conn.Close()
	}
}

// Who asks to be left alone is, but not for longer than an hour.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "90": 90 * time.Second, "7200": time.Hour, "99999999999999999999": 0, "-5": 0, "soon": 0,
		"Fri, 01 May 2026 00:01:40 GMT": 100 * time.Second, "Thu, 30 Apr 2026 23:59:00 GMT": 0, "Fri, 01 May 2099 00:00:00 GMT": time.Hour,
	} {
		assert.Equal(t, want, retryAfter(header, now), header)
	}
	for code, want := range map[int]time.Duration{429: 90 * time.Second, 503: 90 * time.Second, 500: 0} {
		r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(code)
		})
		refused := &refusedError{}
		err := courier{}.send(t.Context(), &jobs.Channel{Slack: &jobs.SlackChannel{URL: r.secretURL(), AllowPrivate: true}}, events(1))
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, want, refused.wait, code)
	}
}

// A receiver that answers without an end, or without a body's end, is left after what it needs to say yes.
func TestAnEndlessAnswerIsNotRead(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	r := receive(t, func(w http.ResponseWriter, req *http.Request) {
		block := make([]byte, 1<<20)
		for req.Context().Err() == nil {
			n, err := w.Write(block)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	require.NoError(t, courier{}.send(t.Context(), &jobs.Channel{Slack: &jobs.SlackChannel{URL: r.secretURL(), AllowPrivate: true}}, events(1)))
	r.Close() // waits for the handler
	assert.Less(t, sent.Load(), int64(64<<20), "what the sockets hold, and no 2 GB")
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	for i, send := range []func(allow bool) error{
		func(allow bool) error {
			return courier{}.send(t.Context(), &jobs.Channel{Webhook: &jobs.WebhookChannel{URL: r.secretURL(), AllowPrivate: allow}}, events(1))
		},
		func(allow bool) error {
			return courier{}.send(t.Context(), &jobs.Channel{Slack: &jobs.SlackChannel{URL: r.secretURL(), AllowPrivate: allow}}, events(1))
		},
		func(allow bool) error {
			return ping(t.Context(), &jobs.Job{Ping: r.secretURL(), PingAllowPrivate: allow}, scheduler.PingSuccess, 7, "x")
		},
	} {
		before, hint := len(r.got), []string{"allow_private: true of", "allow_private: true of", "ping_allow_private: true"}[i]
		require.ErrorContains(t, send(false), "the address 127.0.0.1 of 127.0.0.1 is not public; "+hint)
		assert.Len(t, r.got, before)
		require.NoError(t, send(true))
		assert.Len(t, r.got, before+1)
	}
}

func TestWherePingsGo(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	job := &jobs.Job{Ping: jobs.Secret(r.URL + "/uuid"), PingAllowPrivate: true}
	for _, e := range []jobs.Event{pingStart, scheduler.PingSuccess, scheduler.PingFail} {
		require.NoError(t, ping(t.Context(), job, e, 7, "s:2026-05-01T00:00:00Z"))
	}
	rid := r.got[0].URL.Query().Get("rid")
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, rid)
	for i, path := range []string{"/uuid/start", "/uuid", "/uuid/fail"} {
		assert.Equal(t, path+"?rid="+rid, r.got[i].URL.String())
		assert.Equal(t, http.MethodPost, r.got[i].Method)
	}
	assert.NotEqual(t, rid, runUUID(8, "s:2026-05-01T00:00:00Z"))
	require.ErrorContains(t, ping(t.Context(), &jobs.Job{}, pingStart, 7, "x"), "no ping any more")
}

func TestAnUnknownChannelIsNamed(t *testing.T) {
	t.Parallel()
	err := Test(t.Context(), map[string]jobs.Channel{"ops": {}, "night": {}}, "op", "a", "me")
	require.EqualError(t, err, `there is no channel "op"; the configuration has night, ops`)
	require.EqualError(t, Test(t.Context(), nil, "op", "a", "me"), `there is no channel "op": the configuration has none`)
	r := receive(t, nil)
	known := map[string]jobs.Channel{"ops": {Name: "ops", Webhook: &jobs.WebhookChannel{URL: r.secretURL(), AllowPrivate: true}}}
	require.NoError(t, Test(t.Context(), known, "ops", "a", "me"))
	assert.Contains(t, r.bodies[0], "this is a test of the channel ops, asked for by me")
}

func TestAHangingReceiverIsLeft(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	r := receive(t, func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-req.Context().Done():
		case <-over:
		}
	})
	defer close(over)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ch := &jobs.Channel{Webhook: &jobs.WebhookChannel{URL: r.secretURL(), AllowPrivate: true}}
	require.EqualError(t, courier{}.send(ctx, ch, events(1)), "sending the request: no answer within 10s")
}
