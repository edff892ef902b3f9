package lockingtest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

// NewMemory returns an empty store in memory that takes the time from clock: time.Now in a synctest bubble, or a fake.
func NewMemory(clock func() time.Time) *Memory {
	m := &memory{clock: clock, rows: make(map[string]*locking.Record)}
	return &Memory{Store: locking.Checked(m), table: m}
}

// Memory is a locking.Store in memory.
type Memory struct {
	locking.Store

	table *memory
}

// Age moves the times of a resource's row d into the past, as if it had been written that much earlier.
func (m *Memory) Age(resource string, d time.Duration) {
	m.table.mu.Lock()
	defer m.table.mu.Unlock()
	r := m.table.rows[resource]
	if r == nil {
		return
	}
	r.AcquiredAt, r.RenewedAt, r.ExpiresAt = r.AcquiredAt.Add(-d), r.RenewedAt.Add(-d), r.ExpiresAt.Add(-d)
	if r.ReleasedAt != nil {
		at := r.ReleasedAt.Add(-d)
		r.ReleasedAt = &at
	}
}

type memory struct {
	clock func() time.Time

	mu     sync.Mutex
	rows   map[string]*locking.Record
	lastID int64
	token  int64 // the newest of all resources, which outlives the rows
}

// begin locks the table for one call, and is the end of it for a call whose context has ended.
func (m *memory) begin(ctx context.Context) (now time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	m.mu.Lock()
	return m.clock().UTC(), nil
}

// at returns the row of a resource as of now, or nil.
func (m *memory) at(resource string, now time.Time) *locking.Record {
	r := m.rows[resource]
	if r != nil {
		r.Now = now
	}
	return r
}

// snapshot copies a row, so that a caller cannot change the table.
func snapshot(r *locking.Record) locking.Record {
	c := *r
	c.Metadata = slices.Clone(r.Metadata)
	if r.ReleasedAt != nil {
		at := *r.ReleasedAt
		c.ReleasedAt = &at
	}
	return c
}

func (m *memory) Acquire(ctx context.Context, reqs []locking.AcquireRequest) ([]locking.AcquireResult, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	out := make([]locking.AcquireResult, len(reqs))
	for i := range reqs {
		out[i] = m.acquire(&reqs[i], now)
	}
	return out, nil
}

func (m *memory) acquire(q *locking.AcquireRequest, now time.Time) locking.AcquireResult {
	r := m.at(q.Resource, now)
	if r != nil && !r.FreeFor(*q) {
		return locking.AcquireResult{Record: snapshot(r)}
	}
	res := locking.AcquireResult{Acquired: true}
	if r == nil {
		m.lastID++
		r = &locking.Record{ID: m.lastID, Resource: q.Resource}
		m.rows[q.Resource] = r
	} else {
		res.Takeover, res.Extended = r.TakenOverBy(*q), r.Extends(*q)
	}
	if !res.Extended {
		m.token = max(m.token, r.FencingToken) + 1
		r.FencingToken = m.token
	}
	r.Owner, r.Principal, r.Metadata = q.Owner, q.Principal, slices.Clone(q.Metadata)
	r.AcquiredAt, r.RenewedAt, r.Now, r.ExpiresAt, r.ReleasedAt = now, now, now, now.Add(q.TTL), nil
	res.Record = snapshot(r)
	return res
}

func (m *memory) Renew(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	return m.change(ctx, claims, func(r *locking.Record, c locking.Claim) error {
		if r == nil || r.Renewable(c) != nil {
			return locking.ErrLost
		}
		r.RenewedAt, r.ExpiresAt = r.Now, r.Now.Add(c.TTL)
		return nil
	})
}

func (m *memory) Release(ctx context.Context, claims []locking.Claim) ([]locking.ClaimResult, error) {
	return m.change(ctx, claims, func(r *locking.Record, c locking.Claim) error {
		if r == nil {
			return locking.ErrNotFound
		}
		if err := r.Releasable(c); err != nil {
			return err
		}
		free(r)
		return nil
	})
}

func free(r *locking.Record) {
	at := r.Now
	r.ReleasedAt, r.ExpiresAt = &at, at
}

func (m *memory) change(
	ctx context.Context, claims []locking.Claim, do func(*locking.Record, locking.Claim) error,
) ([]locking.ClaimResult, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	out := make([]locking.ClaimResult, len(claims))
	for i, c := range claims {
		r := m.at(c.Resource, now)
		out[i].Err = do(r, c)
		if r != nil {
			out[i].Record = snapshot(r)
		}
	}
	return out, nil
}

func (m *memory) Get(ctx context.Context, resource string) (locking.Record, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return locking.Record{}, err
	}
	defer m.mu.Unlock()
	r := m.at(resource, now)
	if r == nil || !r.Live() {
		return locking.Record{}, locking.ErrNotFound
	}
	return snapshot(r), nil
}

func (m *memory) List(ctx context.Context, f locking.ListFilter) ([]locking.Record, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	out := []locking.Record{}
	for name := range m.rows {
		if r := m.at(name, now); matches(r, f) {
			out = append(out, snapshot(r))
		}
	}
	slices.SortFunc(out, func(a, b locking.Record) int { return cmp.Compare(a.Resource, b.Resource) })
	return out[:min(len(out), f.Limit)], nil
}

func matches(r *locking.Record, f locking.ListFilter) bool {
	if !strings.HasPrefix(r.Resource, f.Prefix) || r.Resource <= f.After || (f.Owner != "" && r.Owner != f.Owner) {
		return false
	}
	if f.State == locking.StateExpired {
		return !r.Live() && r.ReleasedAt == nil
	}
	return r.Live()
}

func (m *memory) ForceRelease(ctx context.Context, f locking.Force) (locking.Record, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return locking.Record{}, err
	}
	defer m.mu.Unlock()
	r := m.at(f.Resource, now)
	switch {
	case r == nil || !r.Live():
		return locking.Record{}, locking.ErrNotFound
	case r.FencingToken != f.FencingToken:
		return snapshot(r), locking.ErrStaleToken
	case f.Immediate:
		free(r)
	case r.ReleasedAt == nil:
		r.ReleasedAt = &now
	}
	return snapshot(r), nil
}

func (m *memory) Purge(ctx context.Context, olderThan time.Duration, limit int) (int, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	var old []string
	for name, r := range m.rows {
		end := r.ExpiresAt
		if r.ReleasedAt != nil && r.ReleasedAt.After(end) {
			end = *r.ReleasedAt
		}
		if end.Before(now.Add(-olderThan)) {
			old = append(old, name)
		}
	}
	slices.Sort(old)
	old = old[:min(len(old), limit)]
	for _, name := range old {
		delete(m.rows, name)
	}
	return len(old), nil
}

func (m *memory) Now(ctx context.Context) (time.Time, error) {
	now, err := m.begin(ctx)
	if err != nil {
		return time.Time{}, err
	}
	m.mu.Unlock()
	return now, nil
}
