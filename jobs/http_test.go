package jobs

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestARequestOfARun(t *testing.T) {
	t.Parallel()
	a := Attempt{
		Job: &Job{HTTP: &HTTP{
			Method: "POST", URL: "https://example.com/{{ .Resource }}?at={{ .ScheduledAt }}",
			Headers: []Header{{"X-Resource", "<{{ .Resource }}>"}}, Body: `{"r": "{{ .Resource }}", "b": "{{ "{{" }}"}`,
		}},
		Run: Run{ID: 7, FencingToken: 42, Resource: "a/b?c=d&e f#é+", ScheduledAt: time.Unix(0, 0)},
	}
	got, err := a.HTTPRequest()
	require.NoError(t, err)
	assert.Equal(t, HTTPRequest{
		Method: "POST", URL: "https://example.com/a%2Fb%3Fc%3Dd%26e%20f%23%C3%A9%2B?at=1970-01-01T00%3A00%3A00Z",
		Headers: []Header{{"X-Resource", "<a/b?c=d&e f#é+>"}, {"Idempotency-Key", "7"}, {"X-Cronlatch-Fencing-Token", "42"}},
		Body:    `{"r": "a/b?c=d&e f#é+", "b": "{{"}`,
	}, got)
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://example.com":                       "",
		"http://example.com:8080/a?b={{ .Period }}": "",
		"https://[2001:db8::1]/":                    "",
		"https://example.com?{{ .Resource }}":       "",
		"example.com/x":                             "absolute URL",
		"ftp://example.com":                         "absolute URL",
		"file:///etc/passwd":                        "absolute URL",
		"https:example.com":                         "absolute URL",
		"https://":                                  "absolute URL",
		"https://:80/":                              "absolute URL",
		"https://a b/":                              "absolute URL",
		"https://[fe80::1%25eth0]/":                 "absolute URL",
		"https://user:hunter2@example.com/":         "user and a password",
		"https://example.com/#x":                    `must not hold a "#"`,
		"https://example.com/#":                     `must not hold a "#"`,
		"https://example.com:0/":                    "port from 1",
		"https://example.com:65536/":                "port from 1",
		"https://{{ .Resource }}/":                  "before the path",
		"https://example.com{{ .Resource }}":        "before the path",
		"{{ .Resource }}":                           "before the path",
		`https://example.com\{{ .Resource }}`:       "absolute URL",
		"https://example.com/{{ .Nothing }}":        "is not known",
	} {
		err := CheckURL(text, Tokens{Period: true})
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

func TestCheckHeader(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Authorization", "X-A_b.c", "content-type"} {
		require.NoError(t, CheckHeader(name), name)
	}
	for _, name := range []string{
		"", "a b", "a:", "a\nb", "é", "host", "Content-Length", "TRANSFER-ENCODING", "Connection", "Proxy-Authorization",
		"idempotency-key", "X-Cronlatch-Anything", "Expect",
	} {
		assert.Error(t, CheckHeader(name), name)
	}
}

func TestWhatARequestAllows(t *testing.T) {
	t.Parallel()
	h := HTTP{Allow: []string{"Internal.example", "10.1.0.0/16", "::1", "::ffff:10.9.9.9"}}
	assert.True(t, h.AllowsHost("internal.EXAMPLE."))
	assert.False(t, h.AllowsHost("a.internal.example"))
	for addr, want := range map[string]bool{
		"10.1.2.3": true, "10.2.0.1": false, "::1": true, "::2": false, "10.9.9.9": true, "10.9.9.8": false,
	} {
		assert.Equal(t, want, h.AllowsAddress(netip.MustParseAddr(addr)), addr)
	}
	e := Expect{Status: []StatusRange{{200, 204}, {404, 404}}}
	for code, want := range map[int]bool{199: false, 200: true, 204: true, 205: false, 404: true, 500: false} {
		assert.Equal(t, want, e.AllowsStatus(code), code)
	}
}
