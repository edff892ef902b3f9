package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/locking"
)

// storeTimeout bounds one call of the store. A write goes on for as long when its client has left: it may have been
// done, and ending it in the middle would only make that less certain.
const storeTimeout = 10 * time.Second

func (c *call) reading() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.r.Context(), storeTimeout)
}

func (c *call) writing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.r.Context()), storeTimeout)
}

func getLock(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	if err := (&fields{}).check(c.resource()); err != nil {
		return err
	}
	ctx, cancel := c.reading()
	defer cancel()
	r, err := c.o.Locks.Get(ctx, c.resource())
	if errors.Is(err, locking.ErrNotFound) {
		return noSuchLock()
	}
	if err != nil {
		return c.storeFailed(err)
	}
	return c.writeBody(appendLock(nil, &r))
}

func noSuchLock() error {
	return &problem{Status: http.StatusNotFound, Code: "not_found", Detail: "nobody holds a lock of this name"}
}

// input reads query, body and fields in the order of the contract.
func (c *call) input(read func(f *fields), known ...string) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	given, err := c.body(known...)
	if err != nil {
		return err
	}
	f := &fields{given: given}
	read(f)
	return f.check(c.resource())
}

func acquireLock(c *call) error {
	req := locking.AcquireRequest{Resource: c.resource(), Principal: c.who.ID, Grace: c.o.Grace}
	if err := c.input(func(f *fields) {
		req.Owner, req.TTL, req.Metadata = f.owner(), f.ttl(), f.metadata()
	}, "owner", "ttl_seconds", "metadata"); err != nil {
		return err
	}
	res, err := c.acquire(req)
	if errors.Is(err, errNoHolder) {
		return unavailable(problem{Code: "database", Detail: "the holder changed while it was looked at: ask again"})
	}
	if err != nil {
		c.decided(audit.LockAcquire, audit.Unknown, audit.Owner(req.Owner), audit.Reason("database"))
		return c.storeFailed(err)
	}
	if !res.Acquired {
		return c.refused(&res.Record)
	}
	c.granted(&res)
	b := appendLock([]byte(`{"acquired":true,"lock":`), &res.Record)
	return c.writeBody(append(b, '}'))
}

// holderTries is how often a holder that went away while it was looked at is worth another try.
const holderTries = 3

// acquire asks again when the holder went away in between: there is then nobody to name.
func (c *call) acquire(req locking.AcquireRequest) (res locking.AcquireResult, err error) {
	ctx, cancel := c.writing()
	defer cancel()
	for range holderTries {
		all, err := c.o.Locks.Acquire(ctx, []locking.AcquireRequest{req})
		if err != nil {
			return res, err
		}
		if res = all[0]; res.Acquired || res.Record.Owner != "" {
			return res, nil
		}
	}
	return res, errNoHolder
}

var errNoHolder = errors.New("the holder changed at every try")

// refused answers that somebody else has it. That is a normal answer: 200, and not in the audit.
func (c *call) refused(holder *locking.Record) error {
	seconds := c.retryAfter(holder)
	c.w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	b := appendText([]byte(`{"acquired":false,"resource":`), holder.Resource)
	b = append(b, `,"retry_after_seconds":`...)
	b = strconv.AppendInt(b, seconds, 10)
	b = appendHolder(append(b, `,"holder":`...), holder)
	return c.writeBody(append(b, '}'))
}

// retryAfter is when the name will be free if nobody renews, rounded up to whole seconds.
func (c *call) retryAfter(holder *locking.Record) int64 {
	left := holder.ExpiresAt.Add(c.o.Grace).Sub(holder.Now)
	return max(1, int64((left+time.Second-1)/time.Second))
}

func (c *call) granted(res *locking.AcquireResult) {
	action, reason := audit.LockAcquire, "free"
	switch {
	case res.Takeover:
		action, reason = audit.LockTakeover, "expired"
	case res.Extended:
		reason = "extended"
	}
	c.decided(action, audit.Success, audit.Owner(res.Record.Owner), audit.Token(res.Record.FencingToken), audit.Reason(reason))
}

func renewLock(c *call) error {
	claim := locking.Claim{Resource: c.resource(), Principal: c.who.ID}
	if err := c.input(func(f *fields) {
		claim.Owner, claim.TTL, claim.FencingToken = f.owner(), f.ttl(), f.token(false)
	}, "owner", "ttl_seconds", "fencing_token"); err != nil {
		return err
	}
	r, err := c.claim(c.o.Locks.Renew, claim)
	switch {
	case errors.Is(err, locking.ErrLost):
		c.decided(audit.LockRenewFail, audit.Failure, claimFields(claim, "lost")...)
		return &problem{
			Status: http.StatusConflict, Code: "not_renewable",
			Detail: "the lock has expired, was taken away, or is not (or no longer) this owner's",
		}
	case err != nil:
		c.decided(audit.LockRenewFail, audit.Unknown, claimFields(claim, "database")...)
		return c.storeFailed(err)
	}
	return c.writeBody(appendLock(nil, &r))
}

func releaseLock(c *call) error {
	claim := locking.Claim{Resource: c.resource(), Principal: c.who.ID}
	if err := c.input(func(f *fields) {
		claim.Owner, claim.FencingToken = f.owner(), f.token(false)
	}, "owner", "fencing_token"); err != nil {
		return err
	}
	r, err := c.claim(c.o.Locks.Release, claim)
	switch {
	case err == nil:
		c.decided(audit.LockRelease, audit.Success, audit.Owner(r.Owner), audit.Token(r.FencingToken), audit.Reason("released"))
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	case errors.Is(err, locking.ErrNotFound):
		return noSuchLock()
	case errors.Is(err, locking.ErrNotOwner):
		c.decided(audit.LockRelease, audit.Failure, claimFields(claim, "not_owner")...)
		return &problem{Status: http.StatusForbidden, Code: "not_owner", Detail: "another owner holds the lock"}
	case errors.Is(err, locking.ErrStaleToken):
		c.decided(audit.LockRelease, audit.Failure, claimFields(claim, "stale_token")...)
		return staleToken()
	default:
		c.decided(audit.LockRelease, audit.Unknown, claimFields(claim, "database")...)
		return c.storeFailed(err)
	}
}

func staleToken() error {
	return &problem{Status: http.StatusConflict, Code: "stale_token", Detail: "the fencing token is not the current one"}
}

// claim makes one call of a batch of one.
func (c *call) claim(
	do func(context.Context, []locking.Claim) ([]locking.ClaimResult, error), claim locking.Claim,
) (locking.Record, error) {
	ctx, cancel := c.writing()
	defer cancel()
	res, err := do(ctx, []locking.Claim{claim})
	if err != nil {
		return locking.Record{}, err
	}
	return res[0].Record, res[0].Err
}

func forceReleaseLock(c *call) error {
	force := locking.Force{Resource: c.resource(), Actor: c.actor(), Replica: c.o.Replica}
	if err := c.input(func(f *fields) {
		force.FencingToken, force.Reason, force.Immediate = f.token(true), f.reason(), f.boolean("immediate")
	}, "fencing_token", "reason", "immediate"); err != nil {
		return err
	}
	ctx, cancel := c.writing()
	defer cancel()
	r, err := c.o.Locks.ForceRelease(ctx, force)
	line := []zap.Field{audit.Token(force.FencingToken), audit.Reason(force.Reason), audit.Immediate(force.Immediate)}
	switch {
	case err == nil:
		c.decided(audit.LockForceRelease, audit.Success, append(line, audit.Owner(r.Owner))...)
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	case errors.Is(err, locking.ErrNotFound):
		return noSuchLock()
	case errors.Is(err, locking.ErrStaleToken):
		c.decided(audit.LockForceRelease, audit.Failure, line...)
		return staleToken()
	default:
		c.decided(audit.LockForceRelease, audit.Unknown, line...)
		return c.storeFailed(err)
	}
}

// decided leaves a line in the audit about the lock in the path.
func (c *call) decided(action audit.Action, outcome audit.Outcome, more ...zap.Field) {
	audit.Log(c.audit, action, outcome, append(append(c.auditFields(), audit.Resource(c.resource())), more...)...)
}

func claimFields(claim locking.Claim, reason string) []zap.Field {
	out := []zap.Field{audit.Owner(claim.Owner), audit.Reason(reason)}
	if claim.FencingToken != 0 {
		out = append(out, audit.Token(claim.FencingToken))
	}
	return out
}

// storeFailed is for an answer that did not come: what was asked for may have been done or not.
func (c *call) storeFailed(err error) error {
	if errors.Is(err, locking.ErrInvalid) { // a rule of the stores that the fields above do not know
		return &problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Detail: "the request cannot be used"}
	}
	if c.r.Context().Err() == nil {
		c.log.Warn("the lock table did not answer", zap.String("request.id", idOf(c.r)),
			zap.String("operation", c.route.operation), zap.Error(err))
	}
	return unavailable(problem{Code: "database", Detail: "the database did not answer; what was asked for may have been done: ask again"})
}
