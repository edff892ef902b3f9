package locking

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

type postgres struct{ session }

const pgUnit = time.Microsecond

// newPostgres works on what native knows.
func newPostgres(db bun.IDB) *postgres {
	s := newSession(db, pgUnit)
	s.run = native(db)
	return &postgres{s}
}

func (s *postgres) Acquire(ctx context.Context, reqs []AcquireRequest) ([]AcquireResult, error) {
	out, late, err := s.tryAcquire(ctx, reqs)
	if err != nil || len(late) == 0 {
		return out, err
	}
	again := make([]AcquireRequest, len(late))
	for i, at := range late {
		again[i] = reqs[at]
	}
	second, _, err := s.tryAcquire(ctx, again)
	if err != nil {
		return nil, err
	}
	for i, at := range late {
		out[at] = second[i]
	}
	return out, nil
}

// tryAcquire also returns the indexes of grants that are worth another try.
func (s *postgres) tryAcquire(ctx context.Context, reqs []AcquireRequest) (out []AcquireResult, late []int, err error) {
	batch, err := wire(sortedRequests(reqs, pgUnit))
	if err != nil {
		return nil, nil, err
	}
	graces, err := wire(gracesOf(reqs))
	if err != nil {
		return nil, nil, err
	}
	rows, err := s.query(ctx, pgAcquire, batch, graces)
	if err != nil {
		return nil, nil, fmt.Errorf("locking: acquire: %w", err)
	}
	seen := byResource(rows)
	out, unseen := answerAcquire(reqs, seen)
	if len(unseen) > 0 {
		err = s.lookAgain(ctx, out, unseen)
	}
	for i := range out {
		if seen[reqs[i].Resource].expiredInTheQueue() {
			late = append(late, i)
		}
	}
	return out, late, err
}

// expiredInTheQueue reports whether a new row was over when it was written: its time was read before it waited for
// somebody's insert that was rolled back. The time of a row that replaced another was read after the wait; if that has
// expired on arrival, too, it was a grant all the same, and what the owner held before is over. Asking again would hide
// that.
func (r *row) expiredInTheQueue() bool {
	if r == nil || !r.done || r.Live() {
		return false
	}
	_, _, replaced := r.parseReplaced()
	return !replaced
}

// gracesOf maps resources to their takeover grace: DO UPDATE sees the inserted row, not the request.
func gracesOf(reqs []AcquireRequest) map[string]int64 {
	m := make(map[string]int64)
	for _, q := range reqs {
		if q.Grace > 0 {
			m[q.Resource] = units(q.Grace, pgUnit)
		}
	}
	return m
}

// answerAcquire also returns the indexes of the losers whose holder came after the statement's snapshot.
func answerAcquire(reqs []AcquireRequest, seen map[string]*row) (out []AcquireResult, unseen []int) {
	out = make([]AcquireResult, len(reqs))
	for i, q := range reqs {
		out[i].Record.Resource = q.Resource
		r, ok := seen[q.Resource]
		switch {
		case ok && r.done:
			token, takeover, replaced := r.parseReplaced()
			out[i] = AcquireResult{
				Acquired: true, Record: r.Record,
				Takeover: takeover, Extended: replaced && token == r.FencingToken,
			}
		case ok && !r.FreeFor(q):
			out[i].Record = r.Record
		default:
			unseen = append(unseen, i)
		}
	}
	return out, unseen
}

func (s *postgres) lookAgain(ctx context.Context, out []AcquireResult, unseen []int) error {
	names := make([]string, len(unseen))
	for i, at := range unseen {
		names[i] = out[at].Record.Resource
	}
	seen, err := s.look(ctx, names)
	if err != nil {
		return fmt.Errorf("locking: acquire: read the holders: %w", err)
	}
	for _, at := range unseen {
		if r, ok := seen[out[at].Record.Resource]; ok && r.Live() {
			out[at].Record = r.Record
		}
	}
	return nil
}

func (s *postgres) look(ctx context.Context, names []string) (map[string]*row, error) {
	list, err := wire(names)
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, pgLook, list)
	return byResource(rows), err
}

// Renew skips rows that another transaction has locked, so that one of them does not stall the others, and then waits
// for each of those alone. In a caller's transaction it waits at once: rows locked one after the other, with the batch's
// locks held, would be out of order.
func (s *postgres) Renew(ctx context.Context, claims []Claim) ([]ClaimResult, error) {
	skip := "SKIP LOCKED"
	if s.tx {
		skip = ""
	}
	seen, err := s.change(ctx, claims, fmt.Sprintf(pgChange, skip, pgUnforced, pgExtend, pgNoWake))
	if err != nil {
		return nil, fmt.Errorf("locking: renew: %w", err)
	}
	out := make([]ClaimResult, len(claims))
	for i, c := range claims {
		out[i] = renewAnswer(seen[c.Resource], c)
		if out[i].Err == nil && !seen[c.Resource].done {
			out[i] = s.renewAfterWait(ctx, c)
		}
	}
	return out, nil
}

// renewAnswer has a nil error both for a row that was renewed and for one that the snapshot showed as renewable.
func renewAnswer(r *row, c Claim) ClaimResult {
	switch {
	case r == nil:
		return ClaimResult{Err: ErrLost}
	case r.done:
		return ClaimResult{Record: r.Record}
	}
	return ClaimResult{Err: r.Renewable(c), Record: r.Record}
}

// renewAfterWait renews one claim whose row was locked: for as long as the session's lock_timeout allows. What does not
// match after the wait is lost, whatever the snapshot from before it shows.
func (s *postgres) renewAfterWait(ctx context.Context, c Claim) ClaimResult {
	if s.tx {
		return ClaimResult{Err: ErrLost} // it has waited
	}
	seen, err := s.change(ctx, []Claim{c}, fmt.Sprintf(pgChange, "", pgUnforced, pgExtend, pgNoWake))
	if err != nil {
		return ClaimResult{Err: fmt.Errorf("%w: renew %q: %w", ErrUnknown, c.Resource, err)}
	}
	if r := seen[c.Resource]; r != nil && r.done {
		return ClaimResult{Record: r.Record}
	}
	return ClaimResult{Err: ErrLost}
}

func (s *postgres) Release(ctx context.Context, claims []Claim) ([]ClaimResult, error) {
	seen, err := s.change(ctx, claims, fmt.Sprintf(pgChange, "", pgUnreleased, pgFree, pgWake))
	if err != nil {
		return nil, fmt.Errorf("locking: release: %w", err)
	}
	out := make([]ClaimResult, len(claims))
	for i, c := range claims {
		out[i] = s.releaseAnswer(ctx, seen[c.Resource], c)
	}
	return out, nil
}

// releaseAnswer says why a row was not released. When the snapshot shows it as releasable, it was changed while the
// statement waited for it: then the reason is in the row as it is now.
func (s *postgres) releaseAnswer(ctx context.Context, r *row, c Claim) ClaimResult {
	if r != nil && r.done {
		return ClaimResult{Record: r.Record}
	}
	if r != nil && r.Releasable(c) == nil {
		now, err := s.look(ctx, []string{c.Resource})
		if err != nil {
			return ClaimResult{Err: fmt.Errorf("%w: release %q: %w", ErrUnknown, c.Resource, err)}
		}
		r = now[c.Resource]
	}
	return refusal(r, c)
}

func (s *postgres) change(ctx context.Context, claims []Claim, query string) (map[string]*row, error) {
	batch, err := wire(sortedClaims(claims, pgUnit))
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, query, batch)
	if err != nil {
		return nil, err
	}
	return byResource(rows), nil
}

func (s *postgres) Get(ctx context.Context, resource string) (Record, error) {
	seen, err := s.look(ctx, []string{resource})
	if err != nil {
		return Record{}, fmt.Errorf("locking: get %q: %w", resource, err)
	}
	return getAnswer(seen[resource], resource)
}

func (s *postgres) List(ctx context.Context, f ListFilter) ([]Record, error) {
	state := pgLive
	if f.State == StateExpired {
		state = pgAbandoned
	}
	from, to := rangeOf(f.Prefix)
	rows, err := s.query(ctx, fmt.Sprintf(pgList, state), from, to, f.After, f.Owner, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("locking: list: %w", err)
	}
	return records(rows), nil
}

func (s *postgres) ForceRelease(ctx context.Context, f Force) (Record, error) {
	rows, err := s.query(ctx, pgForce, f.Resource, f.FencingToken, f.Immediate, f.Actor, f.Reason, f.Replica)
	if err != nil {
		return Record{}, fmt.Errorf("locking: force-release %q: %w", f.Resource, err)
	}
	return forceAnswer(rows, f)
}

func (s *postgres) Purge(ctx context.Context, olderThan time.Duration, limit int) (int, error) {
	if _, err := s.exec(ctx, pgPurgeWaiters); err != nil {
		return 0, fmt.Errorf("locking: purge the waiters: %w", err)
	}
	res, err := s.exec(ctx, pgPurge, olderThan.Microseconds(), limit)
	return purgeAnswer(res, err)
}

func (s *postgres) Now(ctx context.Context) (time.Time, error) {
	return s.clock(ctx, pgNow)
}
