package jobs

import (
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// HTTP is a request that a job makes instead of running a command. URL, headers and body may hold credentials: a value
// of this type prints as nothing but its method.
//
//nolint:recvcheck // a value prints, only a pointer is asked
type HTTP struct {
	Method  string   // in upper case
	URL     string   // absolute, http or https; tokens after the host
	Headers []Header // sorted by name
	Body    string
	Expect  Expect
	MaxBody int      // bytes of the answer's body that are read
	Allow   []string // names of hosts, addresses and networks that may be private: see AllowsHost and AllowsAddress
}

// Header is one header of a request; its value may hold tokens.
type Header struct{ Name, Value string }

// Expect is what makes an answer a success.
type Expect struct {
	Status []StatusRange
	Body   *regexp.Regexp // matches somewhere in the body; nil is every body
}

// StatusRange is a range of status codes, both ends included.
type StatusRange struct{ From, To int }

// Format prints no more than the method.
func (h HTTP) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "http{"+h.Method+" ***}") }

// MarshalText is Format, for JSON and logs.
func (h HTTP) MarshalText() ([]byte, error) { return fmt.Append(nil, h), nil }

// AllowsStatus reports whether the status is an expected one.
func (e Expect) AllowsStatus(code int) bool {
	for _, r := range e.Status {
		if r.From <= code && code <= r.To {
			return true
		}
	}
	return false
}

// AllowsHost reports whether the name of the URL's host is allowed, wherever it leads.
func (h *HTTP) AllowsHost(host string) bool {
	for _, a := range h.Allow {
		if strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(host, ".")) {
			return true
		}
	}
	return false
}

// AllowsAddress reports whether an allowed network, or a single allowed address, has the address in it.
func (h *HTTP) AllowsAddress(addr netip.Addr) bool {
	for _, a := range h.Allow {
		if p, err := netip.ParsePrefix(a); err == nil && p.Contains(addr) {
			return true
		}
		if one, err := netip.ParseAddr(a); err == nil && one.Unmap() == addr {
			return true
		}
	}
	return false
}

// The headers that every request carries: the receiver can tell a repetition (a proxy's, or of a broken connection)
// from a new run, and refuse a run whose lock has passed on (package locking says how).
const (
	HeaderIdempotencyKey = "Idempotency-Key"
	HeaderFencingToken   = "X-Cronlatch-Fencing-Token"
)

// HTTPRequest is the request of one run, with its tokens replaced.
type HTTPRequest struct {
	Method, URL string
	Headers     []Header
	Body        string
}

// Format prints no more than the method.
func (r HTTPRequest) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "request{"+r.Method+" ***}")
}

// HTTPRequest is the request of the attempt. What replaces a token in the URL is percent-encoded as a whole, so that it
// stays one segment of the path or one value of the query.
func (a *Attempt) HTTPRequest() (HTTPRequest, error) {
	h, values := a.Job.HTTP, a.Values()
	r := HTTPRequest{Method: h.Method}
	_, err := a.Params()
	if err != nil {
		return HTTPRequest{}, err
	}
	if r.URL, err = expandArg(h.URL, values.inURL); err != nil {
		return HTTPRequest{}, fmt.Errorf("expand the URL: %w", err)
	}
	for _, header := range h.Headers {
		value, err := expandArg(header.Value, values.lookUp)
		if err != nil {
			return HTTPRequest{}, fmt.Errorf("expand the header %s: %w", header.Name, err)
		}
		r.Headers = append(r.Headers, Header{header.Name, value})
	}
	if r.Body, err = expandArg(h.Body, values.lookUp); err != nil {
		return HTTPRequest{}, fmt.Errorf("expand the body: %w", err)
	}
	r.Headers = append(r.Headers, Header{HeaderIdempotencyKey, strconv.FormatInt(a.Run.ID, 10)},
		Header{HeaderFencingToken, strconv.FormatInt(a.Run.FencingToken, 10)})
	if a.TraceParent != "" {
		r.Headers = append(r.Headers, Header{"traceparent", a.TraceParent})
	}
	return r, nil
}

func (v Values) inURL(token string) (value, fault string) {
	value, fault = v.lookUp(token)
	if token != tokenBraces {
		value = escapeURL(value)
	}
	return value, fault
}

// escapeURL encodes everything that is not unreserved in RFC 3986.
func escapeURL(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// CheckURL says what is wrong with the URL of a request; nil is nothing. An error that is a *TokenError has a position.
// The text is never repeated: it may hold credentials.
func CheckURL(text string, t Tokens) error {
	if err := CheckArg(text, t); err != nil {
		return err
	}
	host := hostEnd(text)
	if i := strings.Index(text, "{{"); i >= 0 && i < host {
		return &TokenError{Message: "a token cannot stand before the path: the host is the same in every run", Offset: i, Length: 2}
	}
	sample, err := expandArg(text, t.sample().inURL)
	if err != nil {
		return err
	}
	u, err := url.Parse(sample)
	switch {
	case err != nil:
		return errURL
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Opaque != "":
		return errURL
	case u.User != nil:
		return errURLUser
	case u.Fragment != "" || strings.Contains(text, "#"):
		return errURLFragment
	case u.Hostname() == "" || strings.Contains(u.Hostname(), "%"):
		return errURL
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return errURLPort
		}
	}
	return nil
}

// hostEnd is where the path, the query or the fragment begins.
func hostEnd(text string) int {
	start := strings.Index(text, "://")
	if start < 0 {
		return len(text)
	}
	start += len("://")
	if end := strings.IndexAny(text[start:], `/?#\`); end >= 0 {
		return start + end
	}
	return len(text)
}

// urlError is what is wrong with a URL, as the end of a sentence.
type urlError string

func (e urlError) Error() string { return string(e) }

const (
	errURL         = urlError("must be an absolute URL such as https://example.com/path")
	errURLUser     = urlError("must not hold a user and a password; send them as the header Authorization")
	errURLFragment = urlError(`must not hold a "#": what follows it is not sent; write %23 for the character itself`)
	errURLPort     = urlError("must have a port from 1 to 65535, or none")
)

// CheckHeader says why a job cannot set the header; nil when it can.
func CheckHeader(name string) error {
	lower := strings.ToLower(name)
	switch {
	case !headerName.MatchString(name):
		return urlError("is not the name of a header")
	case strings.HasPrefix(lower, "x-cronlatch-"), lower == strings.ToLower(HeaderIdempotencyKey):
		return urlError("is set by cronlatch for every run")
	case ownHeaders[lower], strings.HasPrefix(lower, "proxy-"):
		return urlError("belongs to the connection and cannot be set")
	}
	return nil
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// ownHeaders are decided by the client, or would make two readers see two requests.
//
//nolint:gochecknoglobals // a closed list
var ownHeaders = map[string]bool{
	"host": true, "content-length": true, "transfer-encoding": true, "connection": true, "keep-alive": true,
	"upgrade": true, "te": true, "trailer": true, "expect": true,
}
