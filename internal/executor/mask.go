package executor

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/jobs"
)

const masked = "***"

// shownHeaders are the headers of an answer whose values are kept with the run. Of all others, the name is: cookies,
// tokens and signed links have too many names for a list of what to hide.
//
//nolint:gochecknoglobals // a closed list
var shownHeaders = map[string]bool{
	"Age": true, "Allow": true, "Cache-Control": true, "Content-Encoding": true, "Content-Language": true,
	"Content-Length": true, "Content-Type": true, "Date": true, "Etag": true, "Expires": true, "Last-Modified": true,
	"Retry-After": true, "Server": true, "Vary": true, "Via": true, "X-Request-Id": true, "X-Ratelimit-Limit": true,
	"X-Ratelimit-Remaining": true, "X-Ratelimit-Reset": true,
}

// masks hides what the request sent as credentials where the answer repeats it. It is best effort: a receiver that
// encodes them in a way of its own shows them.
type masks struct{ replacer *strings.Replacer }

// harmlessHeaders are the headers of a request whose values are no credentials.
//
//nolint:gochecknoglobals // a closed list
var harmlessHeaders = map[string]bool{
	"accept": true, "accept-language": true, "cache-control": true, "content-type": true, "content-language": true,
	"user-agent": true, "idempotency-key": true, "x-cronlatch-fencing-token": true,
}

// shortest is the shortest text that is hidden: a shorter one would tear holes into every answer.
const shortest = 6

func secretsOf(r jobs.HTTPRequest) masks {
	secrets := map[string]bool{}
	add := func(text string) {
		for _, form := range []string{text, url.QueryEscape(text), base64.StdEncoding.EncodeToString([]byte(text))} {
			if len(text) >= shortest {
				secrets[form] = true
			}
		}
	}
	for _, h := range r.Headers {
		if harmlessHeaders[strings.ToLower(h.Name)] {
			continue
		}
		add(h.Value)
		if _, credentials, ok := strings.Cut(h.Value, " "); ok { // Bearer, Basic
			add(strings.TrimSpace(credentials))
		}
	}
	if u, err := url.Parse(r.URL); err == nil {
		for _, values := range u.Query() {
			for _, value := range values {
				add(value)
			}
		}
	}
	// The longest first: a secret inside another one must not leave the rest of it.
	list := slices.SortedFunc(maps.Keys(secrets), func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(list))
	for _, s := range list {
		pairs = append(pairs, s, masked)
	}
	return masks{strings.NewReplacer(pairs...)}
}

func (m masks) hide(text string) string { return m.replacer.Replace(text) }

// writeHead writes the status line and the headers.
func (m masks) writeHead(w io.Writer, resp *http.Response) {
	_, _ = fmt.Fprintf(w, "%s %s\n", resp.Proto, m.hide(resp.Status))
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		value := masked
		if shownHeaders[name] {
			value = m.hide(strings.Join(resp.Header[name], ", "))
		}
		_, _ = fmt.Fprintf(w, "%s: %s\n", name, value)
	}
	_, _ = io.WriteString(w, "\n")
}
