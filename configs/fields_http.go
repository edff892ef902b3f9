package configs

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cronlatch/cronlatch/jobs"
)

// httpDraft is a request as it is read, with the nodes of what has tokens in it.
type httpDraft struct {
	jobs.HTTP

	url, body *node // nil when the key is not there
	headers   []*node
}

const httpShape = `{url: "https://example.com/hook", method: POST}`

func httpFields() []field[httpDraft] {
	return []field[httpDraft]{
		{
			key: "url", required: true, doc: "Where the request goes. Tokens are replaced after the host, and percent-encoded.",
			bind: func(d *httpDraft) sink { return tokenText{&d.URL, &d.url} },
		},
		{
			key: "method", initial: "GET", doc: "The method of the request.",
			bind: func(d *httpDraft) sink {
				return choice[string]{into: &d.Method, words: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}}
			},
		},
		{
			key: "headers", doc: "Headers by name, tokens included. Idempotency-Key and X-Cronlatch-Fencing-Token are sent with every request.",
			bind: func(d *httpDraft) sink { return headerMap{&d.Headers, &d.headers} },
		},
		{
			key: "body", doc: "The body of the request, tokens included.",
			bind: func(d *httpDraft) sink { return tokenText{&d.Body, &d.body} },
		},
		{
			key: "expect", doc: "Which answers are a success.",
			bind: func(d *httpDraft) sink { return group[jobs.Expect]{expectFields(), &d.Expect, "{status: [200-299]}"} },
		},
		{
			key: "max_body", initial: "64KiB", doc: "How much of the answer's body is read; expect.body sees no more. At most 1MiB.",
			bind: func(d *httpDraft) sink { return size{&d.MaxBody, 1, 1 << 20} },
		},
		{
			key: "allow", doc: "Names of hosts, addresses and networks that are not public and may be reached all the same: `[internal.example, 10.0.0.0/8]`.",
			bind: func(d *httpDraft) sink { return allowList{&d.Allow} },
		},
	}
}

func expectFields() []field[jobs.Expect] {
	return []field[jobs.Expect]{
		{
			key: "status", initial: "200-299", doc: "A list of status codes and ranges of them.",
			bind: func(e *jobs.Expect) sink { return statusRanges{&e.Status} },
		},
		{
			key: "body", doc: "A regular expression (RE2) that the body must match somewhere. Nothing in it is replaced.",
			bind: func(e *jobs.Expect) sink { return pattern{&e.Body} },
		},
	}
}

// tokenText is a sink for a text whose tokens are checked later, when the job's resource is known.
type tokenText struct {
	into *string
	node **node
}

func (s tokenText) read(r *reader, n *node, name string) {
	text{into: s.into}.read(r, n, name)
	if *s.into != "" {
		*s.node = r.asRead(n, *s.into)
	}
}

// headerMap is a sink for the headers of a request, which it sorts.
type headerMap struct {
	into  *[]jobs.Header
	nodes *[]*node // of the values
}

func (headerMap) empty() string { return "{}" }

func (s headerMap) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, `%s must be a map such as {Authorization: "Bearer ${TOKEN}"}, not %s`, name, n.describe())
		return
	}
	lines := map[string]int{}
	type header struct {
		jobs.Header

		node *node
	}
	var all []header
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		if p.key.kind != kindText {
			continue // reported with the tree
		}
		lower := strings.ToLower(p.key.text)
		if line, twice := lines[lower]; twice {
			r.refuse(p.key, codeConflict, "the header %s is in line %d already; the case of its letters makes no difference", abbreviate(p.key.text), line)
			continue
		}
		lines[lower] = p.key.at.line
		if err := jobs.CheckHeader(p.key.text); err != nil {
			r.refuse(p.key, codeHTTP, "the header %q %s", abbreviate(p.key.text), err.Error())
			continue
		}
		value, ok := r.text(p.value, fmt.Sprintf("%s.%s", name, abbreviate(p.key.text)), false)
		switch {
		case !ok:
		case strings.ContainsFunc(value.text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			r.refuse(p.value, codeHTTP, "the header %s has a control character (a line break?) in its value", abbreviate(p.key.text))
		default:
			all = append(all, header{jobs.Header{Name: p.key.text, Value: value.text}, value})
		}
	}
	slices.SortFunc(all, func(a, b header) int { return cmp.Compare(a.Name, b.Name) })
	for _, h := range all {
		*s.into, *s.nodes = append(*s.into, h.Header), append(*s.nodes, h.node)
	}
}

// statusRanges is a sink for status codes: 204, 200-299, or a list of them.
type statusRanges struct{ into *[]jobs.StatusRange }

var statusRange = regexp.MustCompile(`^([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?$`)

func (s statusRanges) read(r *reader, n *node, name string) {
	items := []*node{n}
	if n.kind == kindList {
		items = n.items
	}
	if len(items) == 0 {
		r.refuse(n, codeEmpty, "%s is an empty list, so that no answer would be a success; write [200-299]", name)
		return
	}
	var ranges []jobs.StatusRange
	for _, item := range items {
		if !r.spend() {
			return
		}
		found := statusRange.FindStringSubmatch(item.text)
		if item.kind != kindText && item.kind != kindInteger || found == nil {
			r.refuse(item, codeHTTP, "%s must be codes such as 204 and ranges such as 200-299, from 100 to 599, not %s", name, item.describe())
			continue
		}
		from, _ := strconv.Atoi(found[1]) // three digits
		to, _ := strconv.Atoi(cmp.Or(found[2], found[1]))
		if to < from {
			r.refuse(item, codeHTTP, "%s: the range %s is empty; write %d-%d", name, item.text, to, from)
		}
		ranges = append(ranges, jobs.StatusRange{From: from, To: to})
	}
	*s.into = ranges
}

// pattern is a sink for a regular expression.
type pattern struct{ into **regexp.Regexp }

func (s pattern) read(r *reader, n *node, name string) {
	var expression string
	text{into: &expression, raw: true}.read(r, n, name)
	if expression == "" {
		return
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		r.refuse(n, codeHTTP, "%s is not a regular expression: %s", name, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return
	}
	*s.into = compiled
}

// size is a sink for a number of bytes with its unit.
type size struct {
	into     *int
	min, max int
}

var sizeText = regexp.MustCompile(`^([1-9][0-9]{0,8})(B|KiB|MiB)$`)

func (s size) read(r *reader, n *node, name string) {
	value := r.scalar(n)
	if value == nil {
		return
	}
	found := sizeText.FindStringSubmatch(value.text)
	if value.kind != kindText || found == nil {
		r.refuse(n, codeType, "%s must be a number of bytes with its unit, such as 512B, 64KiB or 1MiB, not %s", name, n.describe())
		return
	}
	number, _ := strconv.Atoi(found[1]) // nine digits
	bytes := number * map[string]int{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[found[2]]
	if bytes < s.min || bytes > s.max {
		r.refuse(n, codeRange, "%s must be from %dB to %dMiB, not %s", name, s.min, s.max>>20, shown(n))
		return
	}
	*s.into = bytes
}

// allowList is a sink for hosts, addresses and networks.
type allowList struct{ into *[]string }

func (s allowList) read(r *reader, n *node, name string) {
	var items []string
	var nodes []*node
	list{into: &items, nodes: &nodes}.read(r, n, name)
	for i, item := range items {
		network, err := netip.ParsePrefix(item)
		switch {
		case err == nil && network != network.Masked():
			r.refuse(nodes[i], codeHost, "an item of %s has bits beyond its length: write %s for the network", name, network.Masked())
		case err == nil && network.Addr().Is4In6():
			r.refuse(nodes[i], codeHost, "an item of %s must be an IPv4 network, and not one written as IPv6: it is compared with the address that is really reached", name)
		case err != nil && !isHost(item):
			r.refuse(nodes[i], codeHost, "an item of %s must be the name of a host, an address or a network such as 10.0.0.0/8, without scheme and port, not %s", name, shown(nodes[i]))
		}
	}
	*s.into = items
}

// http checks a request as a whole and makes it.
func (r *reader) http(d *jobDraft, tokens jobs.Tokens) *jobs.HTTP {
	n := d.at["http"]
	if n == nil {
		return nil
	}
	h := d.http
	if h.url != nil {
		r.checkURL(h.url, h.URL, tokens)
	}
	r.checkTokens(h.body, h.Body, tokens)
	for i, header := range h.Headers {
		r.checkTokens(h.headers[i], header.Value, tokens)
	}
	if h.Body != "" && (h.Method == http.MethodGet || h.Method == http.MethodHead) {
		r.refuse(h.body, codeConflict, "a request with the method %s has no body; say method: POST or another one", h.Method)
	}
	return &h.HTTP
}

func (r *reader) checkURL(n *node, url string, tokens jobs.Tokens) {
	err := jobs.CheckURL(url, tokens)
	var fault *jobs.TokenError
	switch {
	case err == nil:
	case errors.As(err, &fault):
		r.refusePart(n, part{fault.Offset, fault.Length}, codeTemplate, fault.Message)
	default:
		r.refuse(n, codeHTTP, "http.url %s", err.Error())
	}
}

// request is the canonical form of a jobs.HTTP, which of itself prints as nothing.
type request struct {
	Method, URL, Body string
	Headers           []jobs.Header
	Status            []jobs.StatusRange
	Match             string
	MaxBody           int
	Allow             []string
}

func requestOf(h *jobs.HTTP) *request {
	if h == nil {
		return nil
	}
	q := &request{
		Method: h.Method, URL: h.URL, Body: h.Body, Headers: h.Headers, Status: h.Expect.Status, MaxBody: h.MaxBody, Allow: h.Allow,
	}
	if h.Expect.Body != nil {
		q.Match = h.Expect.Body.String()
	}
	return q
}
