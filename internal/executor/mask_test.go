package executor

import (
	"encoding/base64"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestCredentialsAreHiddenWhereTheAnswerRepeatsThem(t *testing.T) {
	t.Parallel()
	const secret = "hunter2+canary/="
	m := secretsOf(jobs.HTTPRequest{
		URL: "https://example.com/?key=query%2Dcanary&short=abc",
		Headers: []jobs.Header{
			{Name: "Authorization", Value: "Bearer " + secret},
			{Name: "X-Api-Key", Value: "other-canary"},
			{Name: "Content-Type", Value: "application/json"},
			{Name: jobs.HeaderIdempotencyKey, Value: "1234567"},
		},
	})
	for text, want := range map[string]string{
		"you sent " + secret:                                       "you sent ***",
		"you sent Bearer " + secret + ".":                          "you sent ***.",
		url.QueryEscape(secret):                                    "***",
		base64.StdEncoding.EncodeToString([]byte(secret)):          "***",
		"other-canary and query-canary":                            "*** and ***",
		"abc is too short, application/json and 1234567 no secret": "abc is too short, application/json and 1234567 no secret",
	} {
		assert.Equal(t, want, m.hide(text))
	}
}
