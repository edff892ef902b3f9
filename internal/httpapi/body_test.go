package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const goodAcquire = `{"owner": "A", "ttl_seconds": 60}`

func TestContentTypes(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for given, ok := range map[string]bool{
		"application/json": true, "Application/JSON": true, "application/json; charset=utf-8": true, `application/json;charset="UTF-8"`: true,
		"": false, "text/json": false, "application/jsonx": false, "application/problem+json": false, "text/plain": false,
		"application/x-www-form-urlencoded": false, "multipart/form-data; boundary=x": false, "*/*": false,
		"application/json; charset=latin1": false, "application/json; version=1": false, "application/json;": true,
		"application/json, text/plain": false, "application/json; charset=utf-8; charset=latin1": false,
	} {
		w := g.ask(http.MethodPost, path("x"), goodAcquire, "Content-Type", given)
		if ok {
			assert.Equal(t, http.StatusOK, w.Code, given)
			continue
		}
		g.refused(w, http.StatusUnsupportedMediaType, "content_type")
	}
	g.refused(g.ask(http.MethodPost, path("x"), goodAcquire, "Content-Encoding", "gzip"), http.StatusUnsupportedMediaType, "content_type")
	assert.Equal(t, http.StatusOK, g.ask(http.MethodPost, path("x"), goodAcquire, "Content-Encoding", "identity").Code)

	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path("x"), strings.NewReader(goodAcquire))
	r.Host = "localhost"
	r.Header["Content-Type"] = []string{"application/json", "text/plain"}
	g.refused(g.send(r), http.StatusUnsupportedMediaType, "content_type")
}

func TestTheBodyLimitIs64KiB(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, known := range []bool{true, false} { // with a Content-Length, and chunked
		for size, status := range map[int]int{64 << 10: http.StatusOK, 64<<10 + 1: http.StatusRequestEntityTooLarge, 10 << 20: http.StatusRequestEntityTooLarge} {
			body := &counted{Reader: strings.NewReader(goodAcquire + strings.Repeat(" ", size-len(goodAcquire)))}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path("x"), body)
			r.Host, r.ContentLength = "localhost", -1
			if known {
				r.ContentLength = int64(size)
			}
			r.Header.Set("Content-Type", "application/json")
			w := g.send(r)
			require.Equal(t, status, w.Code, "%d %v", size, known)
			assert.LessOrEqual(t, body.n, 64<<10+1024, "what is too much is not read")
		}
	}
}

type counted struct {
	io.Reader

	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

// What is not one JSON object with known names is 400, whatever else is wrong with it.
func TestMalformedBodies(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	deep := func(n int) string {
		return `{"owner": "A", "ttl_seconds": 60, "metadata": ` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + `}`
	}
	for body, detail := range map[string]string{
		" ":                                    "the body is empty",
		"\n\t":                                 "the body is empty",
		`null`:                                 "must be a JSON object",
		`[]`:                                   "must be a JSON object",
		`"owner"`:                              "must be a JSON object",
		`1`:                                    "must be a JSON object",
		`true`:                                 "must be a JSON object",
		`{`:                                    "not valid JSON",
		`{"owner": "A", "ttl_seconds": 60`:     "not valid JSON",
		`{"owner": "A", "ttl_seconds": 60,}`:   "not valid JSON",
		`{'owner': 'A'}`:                       "not valid JSON",
		`{owner: "A"}`:                         "not valid JSON",
		`{"owner": "A" "ttl_seconds": 60}`:     "not valid JSON",
		`{"owner": "A", "ttl_seconds": 060}`:   "not valid JSON",
		`{"owner": "A", "ttl_seconds": +60}`:   "not valid JSON",
		`{"owner": "A", "ttl_seconds": 0x3c}`:  "not valid JSON",
		`{"owner": "A", "ttl_seconds": NaN}`:   "not valid JSON",
		`{"owner": "A\n` + "\n" + `"}`:         "not valid JSON",
		`{"owner": "A"} // comment`:            "goes on after the JSON object, at byte 15",
		`/* */ {"owner": "A"}`:                 "not valid JSON",
		"\ufeff" + goodAcquire:                 "not valid JSON",
		goodAcquire + `{}`:                     "goes on after",
		goodAcquire + ` x`:                     "goes on after",
		goodAcquire + "\x00":                   "goes on after",
		goodAcquire + goodAcquire:              "goes on after",
		"{\"owner\": \"\xff\"}":                "not valid JSON in UTF-8 at byte",
		"{\"\xff\": 1}":                        "not valid JSON in UTF-8 at byte",
		`{"owner": "\ud800"}`:                  "not valid JSON in UTF-8 at byte",
		`{"owner": "\udc00\ud800"}`:            "not valid JSON in UTF-8 at byte",
		"{\"owner\": \"\xed\xa0\x80\"}":        "not valid JSON in UTF-8 at byte",
		`{"owner": "A", "owner": "A"}`:         "a name twice",
		`{"owner": "A", "\u006fwner": "B"}`:    "a name twice",
		`{"metadata": {"a": 1, "a": 2}}`:       "a name twice",
		`{"metadata": {"b": [{"a":1,"a":1}]}}`: "a name twice",
		deep(64):                               "nested more than 64 deep",
		deep(10_000):                           "nested more than 64 deep",
		strings.Repeat("[", 60_000):            "nested more than 64 deep",
		`{"Owner": "A", "ttl_seconds": 60}`:    "fields that this call does not know",
	} {
		p := g.refused(g.ask(http.MethodPost, path("x"), body), http.StatusBadRequest, "malformed")
		assert.Contains(t, p["detail"], detail, body[:min(len(body), 80)])
	}
	assert.Equal(t, http.StatusOK, g.ask(http.MethodPost, path("x"), deep(63)).Code)
	g.refused(g.ask(http.MethodPost, path("x"), "", "Content-Type", "application/json"), http.StatusBadRequest, "malformed")
}

// A body that ends before its Content-Length is not a shorter body.
func TestABodyThatEndsEarly(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path("x"), io.MultiReader(strings.NewReader(goodAcquire), brokenBody{}))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	g.refused(g.send(r), http.StatusBadRequest, "malformed")
	g.refused(g.ask(http.MethodGet, path("x"), ""), http.StatusNotFound, "not_found")
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A name in another case is another name: a reader that folds case would take one of two for the other.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for field, message := range map[string]string{
		"Owner":                  `"Owner" is not known, did you mean "owner"?`,
		"OWNER":                  `"OWNER" is not known, did you mean "owner"?`,
		"ownr":                   `"ownr" is not known, did you mean "owner"?`,
		"ttl":                    `"ttl" is not known`,
		"ttlSeconds":             `"ttlSeconds" is not known, did you mean "ttl_seconds"?`,
		"meta":                   `"meta" is not known`,
		"fencing_token":          `"fencing_token" is not known`, // of renew and release
		"":                       `"" is not known`,
		"ow\u212aner":            "\"ow\u212aner\" is not known, did you mean \"owner\"?",
		strings.Repeat("é", 100): `"` + strings.Repeat("é", 32) + `..." is not known`,
	} {
		p := g.refused(g.ask(http.MethodPost, path("x"), fmt.Sprintf(`{"owner": "A", "ttl_seconds": 60, %q: 1}`, field)), http.StatusBadRequest, "malformed")
		errs, ok := p["errors"].([]any)
		require.True(t, ok)
		require.Len(t, errs, 1)
		assert.Equal(t, message, object(t, errs[0])["message"])
		assert.Equal(t, "unknown", object(t, errs[0])["code"])
	}
	p := g.refused(g.ask(http.MethodPost, path("x"), `{"a": 1, "b": 2, "owner": null}`), http.StatusBadRequest, "malformed")
	assert.Len(t, p["errors"], 2, "all of them at once")

	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, `"x%d":1,`, i)
	}
	w := g.ask(http.MethodPost, path("x"), `{`+many.String()+`"owner":"A"}`)
	assert.Len(t, g.refused(w, http.StatusBadRequest, "malformed")["errors"], 20)
	assert.Less(t, w.Body.Len(), 4096, "the answer is not many times the question")
}
