package httplock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/cronlatch/cronlatch/locking"
)

const (
	// maxPage is how many locks are asked for at once; it bounds an answer at maxPage times maxLockAnswer.
	maxPage = 100
	// maxCursors is how many lists can be under way without starting again.
	maxCursors = 64
)

var errEndless = errors.New("the server's list does not go on and does not end")

type listAnswer struct {
	Locks []lockAnswer `json:"locks"`
	Next  string       `json:"next_cursor"`
}

// List implements locking.Store. The protocol goes on from a cursor that only the server can read, and locking.Store from a
// name: the cursors of the last pages are kept, and without one the list is read from its start.
func (r *remote) List(ctx context.Context, f locking.ListFilter) ([]locking.Record, error) {
	if strings.TrimSpace(f.Owner) != f.Owner {
		return nil, errSpace
	}
	out, err := r.list(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("httplock: list: %w", err)
	}
	return out, nil
}

func (r *remote) list(ctx context.Context, f locking.ListFilter) ([]locking.Record, error) {
	cursor := r.cursors.of(f)
	skipping := cursor == "" && f.After != ""
	out, after := []locking.Record{}, f.After
	for {
		limit := min(f.Limit-len(out), maxPage)
		if skipping {
			limit = maxPage
		}
		page, err := r.page(ctx, f, cursor, limit)
		if err != nil {
			return nil, err
		}
		recs, err := page.after(after, f.Owner)
		if err != nil {
			return nil, err
		}
		if skipping = skipping && len(recs) == 0; len(recs) > 0 {
			after = recs[len(recs)-1].Resource
		}
		out = append(out, recs...)
		switch {
		case len(out) > f.Limit: // the cursor is behind more than was asked for
			return out[:f.Limit], nil
		case page.Next == "":
			return out, nil
		case page.Next == cursor || len(page.Locks) == 0:
			return nil, errEndless
		}
		cursor = page.Next
		if len(out) == f.Limit {
			f.After = after
			r.cursors.keep(f, cursor)
			return out, nil
		}
	}
}

// after are the locks of a page behind a name, in their order.
func (a *listAnswer) after(name, owner string) ([]locking.Record, error) {
	var out []locking.Record
	for i := range a.Locks {
		rec, err := a.Locks[i].record("", owner)
		if err != nil {
			return nil, err
		}
		if rec.Resource > name {
			out, name = append(out, rec), rec.Resource
		}
	}
	return out, nil
}

func (r *remote) page(ctx context.Context, f locking.ListFilter, cursor string, limit int) (listAnswer, error) {
	query := url.Values{"state": {string(f.State)}, "limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{"prefix": f.Prefix, "owner": f.Owner, "cursor": cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var a listAnswer
	err := r.do(ctx, request{
		method: http.MethodGet, path: "/locks", query: query.Encode(),
		want: http.StatusOK, limit: maxPage * maxLockAnswer,
	}, &a)
	if err == nil && (a.Locks == nil || len(a.Locks) > limit) {
		err = errNoLock
	}
	return a, err
}

// cursors remembers where lists go on. The zero value is empty.
type cursors struct {
	mu   sync.Mutex
	next map[locking.ListFilter]string // by the filter without its limit
}

// of returns the cursor of a list that goes on after f.After, or "".
func (c *cursors) of(f locking.ListFilter) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.Limit = 0
	return c.next[f]
}

func (c *cursors) keep(f locking.ListFilter, cursor string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil || len(c.next) >= maxCursors {
		c.next = make(map[locking.ListFilter]string)
	}
	f.Limit = 0
	c.next[f] = cursor
}
