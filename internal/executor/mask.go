package executor

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/internal/mask"
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
type masks struct{ forms [][]byte }

// harmlessHeaders are the headers of a request whose values are no credentials.
//
//nolint:gochecknoglobals // a closed list
var harmlessHeaders = map[string]bool{
	"accept": true, "accept-language": true, "cache-control": true, "content-type": true, "content-language": true,
	"user-agent": true, "idempotency-key": true, "x-cronlatch-fencing-token": true,
}

func secretsOf(r jobs.HTTPRequest) masks {
	var secrets []string
	for _, h := range r.Headers {
		if harmlessHeaders[strings.ToLower(h.Name)] {
			continue
		}
		secrets = append(secrets, h.Value)
		if _, credentials, ok := strings.Cut(h.Value, " "); ok { // Bearer, Basic
			secrets = append(secrets, credentials)
		}
	}
	if u, err := url.Parse(r.URL); err == nil {
		for _, values := range u.Query() {
			secrets = append(secrets, values...)
		}
	}
	return masks{mask.Forms(secrets)}
}

func (m masks) hide(text string) string {
	var b strings.Builder
	emit := func(p []byte) { b.Write(p) }
	masker := mask.New(m.forms)
	masker.Write([]byte(text), emit)
	masker.Flush(emit)
	return b.String()
}

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
