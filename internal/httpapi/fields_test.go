package httpapi_test

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wrong is the errors of a 422 as "field code", sorted.
func (g *rig) wrong(method, at, body string) []string {
	g.Helper()
	p := g.refused(g.ask(method, at, body), http.StatusUnprocessableEntity, "invalid")
	errs, ok := p["errors"].([]any)
	require.True(g, ok, body)
	var out []string
	for _, e := range errs {
		m := object(g.T, e)
		out = append(out, fmt.Sprint(m["field"], " ", m["code"]))
		assert.NotRegexp(g, "locking:|json:|Go ", m["message"])
		assert.Less(g, len(fmt.Sprint(m["message"])), 200)
	}
	sort.Strings(out)
	return out
}

func TestFieldsOfAcquire(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for body, want := range map[string]string{
		`{}`:                                          "owner required, ttl_seconds required",
		`{"owner": null}`:                             "owner null, ttl_seconds required",
		`{"owner": 1, "ttl_seconds": "30"}`:           "owner type, ttl_seconds type",
		`{"owner": "", "ttl_seconds": 0}`:             "owner blank, ttl_seconds range",
		`{"owner": " \t\u2003\u0085\u00a0"}`:          "owner blank, ttl_seconds required",
		`{"owner": "a\u0000b", "ttl_seconds": -1}`:    "owner invalid, ttl_seconds range",
		`{"owner": "a\u001bb", "ttl_seconds": 86401}`: "owner invalid, ttl_seconds range",
		`{"owner": "` + strings.Repeat("x", 1025) + `", "ttl_seconds": true}`:  "owner invalid, ttl_seconds type",
		`{"owner": ["A"], "ttl_seconds": [30]}`:                                "owner type, ttl_seconds type",
		`{"owner": {"a": 1}, "ttl_seconds": {"a": 1}}`:                         "owner type, ttl_seconds type",
		`{"owner": true, "ttl_seconds": 30.0}`:                                 "owner type, ttl_seconds type",
		`{"owner": "A", "ttl_seconds": 3e1}`:                                   "ttl_seconds type",
		`{"owner": "A", "ttl_seconds": 3E1}`:                                   "ttl_seconds type",
		`{"owner": "A", "ttl_seconds": 0.5}`:                                   "ttl_seconds type",
		`{"owner": "A", "ttl_seconds": null}`:                                  "ttl_seconds null",
		`{"owner": "A", "ttl_seconds": -0}`:                                    "ttl_seconds range",
		`{"owner": "A", "ttl_seconds": 9223372036854775808}`:                   "ttl_seconds range",
		`{"owner": "A", "ttl_seconds": 18446744073709551646}`:                  "ttl_seconds range", // 30 in 64 bit
		`{"owner": "A", "ttl_seconds": ` + strings.Repeat("9", 5000) + `}`:     "ttl_seconds range",
		`{"owner": "A", "ttl_seconds": 60, "metadata": null}`:                  "metadata null",
		`{"owner": "A", "ttl_seconds": 60, "metadata": []}`:                    "metadata type",
		`{"owner": "A", "ttl_seconds": 60, "metadata": "{}"}`:                  "metadata type",
		`{"owner": "A", "ttl_seconds": 60, "metadata": {"a": "\u0000"}}`:       "metadata invalid",
		`{"owner": "A", "ttl_seconds": 60, "metadata": {"a": 1e999999}}`:       "metadata invalid",
		`{"metadata": {"a": "` + strings.Repeat("x", 16<<10) + `"}}`:           "metadata invalid, owner required, ttl_seconds required",
		`{"metadata": null, "owner": null, "ttl_seconds": null}`:               "metadata null, owner null, ttl_seconds null",
		`{"metadata": {"a": "\u0000"}, "owner": "\u0000", "ttl_seconds": 1.5}`: "metadata invalid, owner invalid, ttl_seconds type",
	} {
		assert.Equal(t, want, strings.Join(g.wrong(http.MethodPost, path("x"), body), ", "), body[:min(len(body), 80)])
	}
	for _, body := range []string{
		`{"owner": "A", "ttl_seconds": 1}`, `{"ttl_seconds": 86400, "owner": "A"}`, ` {"owner":"A","ttl_seconds":60,"metadata":{}} `,
		`{"\u006fwner": "A", "ttl_seconds": 60}`,
	} {
		assert.Equal(t, http.StatusOK, g.ask(http.MethodPost, path("x"), body).Code, body)
	}
}

func TestFieldsOfTheOthers(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	token := g.mustAcquire("x", "A").FencingToken
	for _, c := range []struct{ method, more, body, want string }{
		{http.MethodPost, "/renew", `{}`, "owner required, ttl_seconds required"},
		{http.MethodPost, "/renew", `{"owner": "A", "ttl_seconds": 60, "fencing_token": null}`, "fencing_token null"},
		{http.MethodPost, "/renew", `{"owner": "A", "ttl_seconds": 60, "fencing_token": 0}`, "fencing_token range"},
		{http.MethodPost, "/renew", `{"owner": "A", "ttl_seconds": 0, "fencing_token": "1"}`, "fencing_token type, ttl_seconds range"},
		{http.MethodDelete, "", `{}`, "owner required"},
		{http.MethodDelete, "", `{"owner": " "}`, "owner blank"},
		{http.MethodDelete, "", `{"owner": "A", "fencing_token": 9007199254740992}`, "fencing_token range"},
		{http.MethodDelete, "", `{"owner": "A", "fencing_token": -1}`, "fencing_token range"},
		{http.MethodDelete, "", `{"owner": "A", "fencing_token": 1.0}`, "fencing_token type"},
		{http.MethodPost, "/force-release", `{}`, "fencing_token required, reason required"},
		{http.MethodPost, "/force-release", `{"fencing_token": 1, "reason": " \n"}`, "reason blank"},
		{http.MethodPost, "/force-release", `{"fencing_token": 0, "reason": 5, "immediate": "yes"}`, "fencing_token range, immediate type, reason type"},
		{http.MethodPost, "/force-release", `{"fencing_token": 1, "reason": "x", "immediate": null}`, "immediate null"},
		{http.MethodPost, "/force-release", `{"fencing_token": 1, "reason": "x", "immediate": 1}`, "immediate type"},
		{http.MethodPost, "/force-release", `{"fencing_token": 1, "reason": "a\u0000"}`, "reason invalid"},
		{http.MethodPost, "/force-release", `{"fencing_token": 1, "reason": "` + strings.Repeat("x", 4097) + `"}`, "reason invalid"},
	} {
		assert.Equal(t, c.want, strings.Join(g.wrong(c.method, path("x", c.more), c.body), ", "), c.body[:min(len(c.body), 80)])
	}
	assert.Equal(t, token, decode[lockJSON](t, g.ask(http.MethodGet, path("x"), "")).FencingToken, "nothing was done")
}

func TestNamesInThePath(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, name := range []string{
		".", "..", "a\x00", "a\nb", "\x7f", "a\u200db", "\ufeff", "\u2028", "\xff", "a\xc3", strings.Repeat("x", 256), strings.Repeat("é", 128),
	} {
		at := "/locks/" + percent(name)
		assert.Equal(t, []string{"resource invalid"}, g.wrong(http.MethodGet, at, ""), "%q", name)
		assert.Equal(t, []string{"resource invalid"}, g.wrong(http.MethodPost, at, goodAcquire), "%q", name)
		assert.Equal(t, []string{"resource invalid"}, g.wrong(http.MethodPost, at+"/renew", goodAcquire), "%q", name)
		assert.Equal(t, []string{"resource invalid"}, g.wrong(http.MethodDelete, at, `{"owner": "A"}`), "%q", name)
		assert.Equal(t, []string{"fencing_token required", "reason required", "resource invalid"}, g.wrong(http.MethodPost, at+"/force-release", `{}`))
	}
	assert.Equal(t, http.StatusOK, g.ask(http.MethodPost, path(strings.Repeat("x", 255)), goodAcquire).Code)
}

// percent escapes every byte, so that nothing on the way can take it for something else.
func percent(name string) string {
	var b strings.Builder
	for i := range len(name) {
		fmt.Fprintf(&b, "%%%02x", name[i])
	}
	return b.String()
}

// What is not a clean path is nothing at all: a redirect would turn a write into a read, and one name into another.
func TestPathsThatAreNotClean(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, at := range []string{
		"//", "//locks/x", "/locks//x", "/locks/x/", "/locks/", "/locks/x//renew", "/locks/./x", "/locks/../x", "/locks/x/../renew",
		"/./locks/x", "/../locks/x", "/locks/x/.", "/locks/x/..", "/locks/x/renew/", "/Locks/x", "/%6cocks/x", "/locks/x/%72enew",
		"/locks/x/other", "/locks/x/renew/more", "/healthz/", "/healthz/.", "/x/../healthz", "//healthz",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodConnect} {
			w := g.ask(method, at, goodAcquire)
			g.refused(w, http.StatusNotFound, "no_route")
			assert.Empty(t, w.Header().Get("Location"))
		}
	}
	locks, err := g.store.List(t.Context(), listAll())
	require.NoError(t, err)
	assert.Empty(t, locks)
}
