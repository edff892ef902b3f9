package httplock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

// remote is the store behind locking.Checked: its arguments are in order for a database.
type remote struct {
	base    *url.URL
	token   string
	http    *http.Client
	cursors cursors
}

// Acquire asks for each resource by itself. A batch with one unanswered request is unanswered: its grants are found by
// asking again with the same owner.
func (r *remote) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	for i := range reqs {
		if err := sayable(&reqs[i]); err != nil {
			return nil, err
		}
	}
	out := make([]locking.AcquireResult, len(reqs))
	errs := each(len(reqs), func(i int) (err error) {
		out[i], err = r.acquire(ctx, &reqs[i])
		return err
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *remote) acquire(ctx context.Context, q *locking.AcquireRequest) (locking.AcquireResult, error) {
	var a acquireAnswer
	err := r.do(ctx, request{
		method: http.MethodPost, path: lockPath(q.Resource, ""), want: http.StatusOK, limit: maxLockAnswer,
		body: body{owner: q.Owner, ttl: q.TTL, metadata: q.Metadata},
	}, &a)
	if err == nil {
		var res locking.AcquireResult
		if res, err = a.result(q); err == nil {
			return res, nil
		}
	}
	return locking.AcquireResult{}, about("acquire", q.Resource, err)
}

// Renew implements locking.Store.
func (r *remote) Renew(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	return r.claims(claims, func(c *locking.Claim) (locking.Record, error) {
		var a lockAnswer
		err := r.do(ctx, request{
			method: http.MethodPost, path: lockPath(c.Resource, "/renew"), want: http.StatusOK, limit: maxLockAnswer,
			body: body{owner: c.Owner, token: c.FencingToken, ttl: c.TTL},
		}, &a)
		if isCode(err, http.StatusConflict, codeNotRenewable, codeStaleToken) {
			return locking.Record{}, locking.ErrLost
		}
		if err != nil {
			return locking.Record{}, about("renew", c.Resource, err)
		}
		rec, err := a.record(c.Resource, c.Owner)
		if err == nil && c.FencingToken != 0 && rec.FencingToken != c.FencingToken {
			err = errOtherLock
		}
		return rec, about("renew", c.Resource, err)
	})
}

// Release implements locking.Store.
func (r *remote) Release(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	return r.claims(claims, func(c *locking.Claim) (locking.Record, error) {
		err := r.do(ctx, request{
			method: http.MethodDelete, path: lockPath(c.Resource, ""), want: http.StatusNoContent,
			body: body{owner: c.Owner, token: c.FencingToken},
		}, nil)
		switch {
		case err == nil:
			return locking.Record{Resource: c.Resource, Owner: c.Owner, FencingToken: c.FencingToken}, nil
		case isCode(err, http.StatusNotFound, codeNotFound):
			return locking.Record{}, locking.ErrNotFound
		case isCode(err, http.StatusForbidden, codeNotOwner):
			return locking.Record{}, locking.ErrNotOwner
		case isCode(err, http.StatusConflict, codeStaleToken):
			return locking.Record{}, locking.ErrStaleToken
		}
		return locking.Record{}, about("release", c.Resource, err)
	})
}

// claims sends one request for each claim. What the server said about a claim is its result; what it did not say is an
// error of the claim, or of the call when nothing is known about any of them.
func (r *remote) claims(
	claims []locking.Claim, send func(c *locking.Claim) (locking.Record, error),
) ([]locking.ClaimResult, error) {
	for _, c := range claims {
		if err := sayableHolder(c.Owner, c.Principal); err != nil {
			return nil, err
		}
	}
	out := make([]locking.ClaimResult, len(claims))
	errs := each(len(claims), func(i int) error {
		rec, err := send(&claims[i])
		out[i] = locking.ClaimResult{Record: rec, Err: err}
		if isFact(err) {
			return nil
		}
		return err
	})
	known := false
	for i, err := range errs {
		if err == nil {
			known = true
			continue
		}
		out[i] = locking.ClaimResult{Err: fmt.Errorf("%w: %w", locking.ErrUnknown, err)}
	}
	if !known {
		return nil, errs[0]
	}
	return out, nil
}

// isFact knows the bare sentinels of this file only: a wrapped one would come from elsewhere.
func isFact(err error) bool {
	return slices.Contains([]error{locking.ErrLost, locking.ErrNotFound, locking.ErrNotOwner, locking.ErrStaleToken}, err)
}

// Get implements locking.Store.
func (r *remote) Get(ctx context.Context, resource string) (locking.Record, error) {
	var a lockAnswer
	err := r.do(ctx, request{
		method: http.MethodGet, path: lockPath(resource, ""), want: http.StatusOK, limit: maxLockAnswer,
	}, &a)
	if isCode(err, http.StatusNotFound, codeNotFound) {
		return locking.Record{}, locking.ErrNotFound
	}
	if err != nil {
		return locking.Record{}, about("get", resource, err)
	}
	rec, err := a.record(resource, "")
	return rec, about("get", resource, err)
}

// ForceRelease implements locking.Store.
func (r *remote) ForceRelease(ctx context.Context, f locking.Force) (locking.Record, error) {
	err := r.do(ctx, request{
		method: http.MethodPost, path: lockPath(f.Resource, "/force-release"), want: http.StatusNoContent,
		body: body{token: f.FencingToken, reason: &f.Reason, immediate: f.Immediate},
	}, nil)
	switch {
	case err == nil:
		return locking.Record{Resource: f.Resource, FencingToken: f.FencingToken}, nil
	case isCode(err, http.StatusNotFound, codeNotFound):
		return locking.Record{}, locking.ErrNotFound
	case isCode(err, http.StatusConflict, codeStaleToken):
		return locking.Record{}, locking.ErrStaleToken
	}
	return locking.Record{}, about("force-release", f.Resource, err)
}

// Purge is not part of the protocol: the server purges by itself.
func (*remote) Purge(context.Context, time.Duration, int) (int, error) {
	return 0, fmt.Errorf("httplock: purge: %w: the server purges by itself", errors.ErrUnsupported)
}

// Now is not part of the protocol: a record has its own Now.
func (*remote) Now(context.Context) (time.Time, error) {
	return time.Time{}, fmt.Errorf("httplock: now: %w: each record has its own", errors.ErrUnsupported)
}

// sayable refuses what the protocol has no word for: leaving it out in silence would be another request.
func sayable(q *locking.AcquireRequest) error {
	if q.Grace != 0 {
		return fmt.Errorf("%w: takeover grace: %w through a server: its own takeover_grace is in force",
			locking.ErrInvalid, errors.ErrUnsupported)
	}
	return sayableHolder(q.Owner, q.Principal)
}

var errSpace = fmt.Errorf("%w: owner: begins or ends with a space, which a server takes away", locking.ErrInvalid)

func sayableHolder(owner, principal string) error {
	if principal != "" {
		return fmt.Errorf("%w: principal: %w through a server: it knows who asks", locking.ErrInvalid, errors.ErrUnsupported)
	}
	if strings.TrimSpace(owner) != owner {
		return errSpace
	}
	return nil
}

func about(verb, resource string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("httplock: %s %q: %w", verb, resource, err)
}
