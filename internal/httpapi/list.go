package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/locking"
)

// query is the parameters of a request. A name that is not known, or there twice, is refused: a mistyped filter would
// otherwise answer with everything.
func (c *call) query(known ...string) (url.Values, error) {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, &problem{Status: http.StatusBadRequest, Code: "query", Detail: "the query is not well formed"}
	}
	var wrong []fieldError
	for name, given := range values {
		if e, bad := unknownName(name, known); bad {
			wrong = append(wrong, e)
		} else if len(given) > 1 {
			wrong = append(wrong, fieldError{name, "duplicate", "is there more than once"})
		}
	}
	if wrong == nil {
		return values, nil
	}
	slices.SortFunc(wrong, func(a, b fieldError) int { return strings.Compare(a.Field, b.Field) })
	wrong = wrong[:min(len(wrong), maxUnknown)]
	return nil, &problem{Status: http.StatusBadRequest, Code: "query", Detail: "the query has parameters that cannot be used", Errors: wrong}
}

func (c *call) noQuery() error {
	_, err := c.query()
	return err
}

// listLocks answers a page. The cursor is the last name of the page before, so that locks that come and go between two
// pages move no other one.
func listLocks(c *call) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	if c.who.Role == auth.Locker && !confine(&filter, c.who.Prefix) {
		return c.writePage(nil, "")
	}
	ctx, cancel := c.reading()
	defer cancel()
	page, err := c.o.Locks.List(ctx, filter)
	if err != nil {
		return c.storeFailed(err)
	}
	next := ""
	if fitting := fit(page); len(fitting) < len(page) {
		page = fitting
		next = cursorOf(page[len(page)-1].Resource)
	} else if len(page) == filter.Limit { // there may be more, and the last page has no cursor
		filter.After, filter.Limit = page[len(page)-1].Resource, 1
		rest, err := c.o.Locks.List(ctx, filter)
		if err != nil {
			return c.storeFailed(err)
		}
		if len(rest) > 0 {
			next = cursorOf(filter.After)
		}
	}
	return c.writePage(page, next)
}

// maxPageBytes bounds an answer. 100 locks with the largest metadata fit; 1,000 of them would be 16 MiB.
const maxPageBytes = 4 << 20

// fit is as much of the start of a page as an answer may have, and at least one lock.
func fit(page []locking.Record) []locking.Record {
	size := 0
	for i := range page {
		size += len(page[i].Resource) + len(page[i].Owner) + len(page[i].Metadata)
		if size > maxPageBytes && i > 0 {
			return page[:i]
		}
	}
	return page
}

// confine narrows a filter to the names with the prefix; false says that it asks for none of them.
func confine(f *locking.ListFilter, prefix string) bool {
	if strings.HasPrefix(prefix, f.Prefix) {
		f.Prefix = prefix
	}
	return strings.HasPrefix(f.Prefix, prefix)
}

func (c *call) writePage(page []locking.Record, next string) error {
	b := []byte(`{"locks":[`)
	for i := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLock(b, &page[i])
	}
	b = append(b, ']')
	if next != "" {
		b = appendText(append(b, `,"next_cursor":`...), next)
	}
	return c.writeBody(append(b, '}'))
}

// filter reads the parameters of a list; everything that is wrong with them is said at once.
func (c *call) filter() (locking.ListFilter, error) {
	filter := locking.ListFilter{State: locking.StateHeld, Limit: locking.DefaultList}
	given, err := c.query("prefix", "owner", "state", "limit", "cursor")
	if err != nil {
		return filter, err
	}
	var f fields
	filter.Prefix = given.Get("prefix")
	if !plainText(filter.Prefix) {
		f.add("prefix", "invalid", "is longer than %d bytes, not valid UTF-8, or has a NUL", locking.MaxOwnerBytes)
	}
	if given.Has("owner") {
		filter.Owner = f.listOwner(given.Get("owner"))
	}
	if given.Has("state") {
		filter.State = f.listState(given.Get("state"))
	}
	if given.Has("limit") {
		filter.Limit = f.listLimit(given.Get("limit"))
	}
	if given.Has("cursor") {
		filter.After = f.listAfter(given.Get("cursor"))
	}
	return filter, f.problem()
}

func plainText(s string) bool {
	return len(s) <= locking.MaxOwnerBytes && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

func (f *fields) listOwner(text string) string {
	owner := strings.TrimSpace(text)
	if err := locking.ValidateOwner(owner); err != nil {
		f.add("owner", "invalid", "%s", clause(err))
	}
	return owner
}

func (f *fields) listState(text string) locking.State {
	if s := locking.State(text); s == locking.StateHeld || s == locking.StateExpired {
		return s
	}
	f.add("state", "invalid", "must be %q or %q", locking.StateHeld, locking.StateExpired)
	return ""
}

func (f *fields) listLimit(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > locking.MaxList || text != strconv.Itoa(n) {
		f.add("limit", "range", "must be an integer from 1 to %d", locking.MaxList)
		return 0
	}
	return n
}

func (f *fields) listAfter(text string) string {
	name, err := cursorText().DecodeString(text)
	if err != nil || locking.ValidateResource(string(name)) != nil {
		f.add("cursor", "invalid", "is not one that a page of this list gave")
		return ""
	}
	return string(name)
}

// cursorText makes one text of one name: Strict refuses the others that mean the same bytes.
func cursorText() *base64.Encoding { return base64.RawURLEncoding.Strict() }

func cursorOf(name string) string { return cursorText().EncodeToString([]byte(name)) }
