package lockingtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
)

// Backend is a store under test, and what a test does to it that no user can.
type Backend struct {
	Store locking.Store
	// Age moves the times of a resource's row d into the past.
	Age func(t *testing.T, resource string, d time.Duration)
	// Reopen returns the store as it is after a restart of everything that can restart.
	Reopen func(t *testing.T) locking.Store
	// Behind is the store that Store asks through a server; nil when Store is the table itself. What the protocol cannot
	// say (package httplock lists it) is then not asked of Store: the contract is otherwise the same.
	Behind locking.Store
}

// Run checks that the store keeps the contract of locking.Store. open returns an empty one for each call.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	t.Helper()
	for _, c := range allCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(&fixture{T: t, Backend: open(t), ctx: t.Context()})
		})
	}
}

type testCase struct {
	name string
	run  func(f *fixture)
}

func allCases() []testCase {
	var all []testCase
	for _, cases := range [][]testCase{
		grantCases(), claimCases(), principalCases(), forceCases(), purgeCases(), listCases(), nameCases(), batchCases(), stormCases(),
	} {
		all = append(all, cases...)
	}
	return all
}

// ttl is long enough that no lock ends by itself while a test runs; what must end is aged.
const ttl = 10 * time.Minute

// fixture is one test on one store, with calls that are short to write. The calls that start with "must" end the test
// when the store does not do what is needed for the rest of it.
type fixture struct {
	*testing.T
	Backend

	ctx context.Context
}

func (f *fixture) try(req locking.AcquireRequest) locking.AcquireResult {
	f.Helper()
	if req.TTL == 0 {
		req.TTL = ttl
	}
	if f.remote() {
		req.Grace = 0 // the server's own is in force
	}
	res, err := f.Store.Acquire(f.ctx, []locking.AcquireRequest{req})
	require.NoError(f, err)
	require.Len(f, res, 1)
	return res[0]
}

func (f *fixture) mustAcquire(resource, owner string) locking.Record {
	f.Helper()
	res := f.try(locking.AcquireRequest{Resource: resource, Owner: owner})
	require.Truef(f, res.Acquired, "%q must get %q: %+v", owner, resource, res)
	return res.Record
}

func (f *fixture) mustBeBusy(resource, owner string) locking.Record {
	f.Helper()
	res := f.try(locking.AcquireRequest{Resource: resource, Owner: owner})
	require.Falsef(f, res.Acquired, "%q must not get %q", owner, resource)
	return res.Record
}

func (f *fixture) renew(c locking.Claim) (locking.Record, error) {
	f.Helper()
	if c.TTL == 0 {
		c.TTL = ttl
	}
	res, err := f.Store.Renew(f.ctx, []locking.Claim{c})
	require.NoError(f, err)
	require.Len(f, res, 1)
	return res[0].Record, res[0].Err
}

func (f *fixture) release(c locking.Claim) (locking.Record, error) {
	f.Helper()
	res, err := f.Store.Release(f.ctx, []locking.Claim{c})
	require.NoError(f, err)
	require.Len(f, res, 1)
	return res[0].Record, res[0].Err
}

func (f *fixture) mustRelease(r locking.Record) {
	f.Helper()
	_, err := f.release(claimOf(r))
	require.NoError(f, err)
}

func (f *fixture) mustForce(r locking.Record, immediate bool) {
	f.Helper()
	_, err := f.Store.ForceRelease(f.ctx, locking.Force{
		Resource: r.Resource, FencingToken: r.FencingToken, Immediate: immediate, Reason: why,
	})
	require.NoError(f, err)
}

// expire lets the lock end as if nobody had renewed it.
func (f *fixture) expire(resource string) {
	f.Helper()
	f.Age(f.T, resource, ttl+time.Second)
}

func (f *fixture) get(resource string) (locking.Record, error) {
	f.Helper()
	return f.Store.Get(f.ctx, resource)
}

func (f *fixture) mustGet(resource string) locking.Record {
	f.Helper()
	r, err := f.get(resource)
	require.NoError(f, err)
	return r
}

// claimOf names exactly the grant of a record.
func claimOf(r locking.Record) locking.Claim {
	return locking.Claim{Resource: r.Resource, Owner: r.Owner, FencingToken: r.FencingToken, TTL: ttl}
}

// sameRow compares two views of one row, apart from when they were read.
func (f *fixture) sameRow(want, got locking.Record) {
	f.Helper()
	assert.JSONEq(f, string(want.Metadata), string(got.Metadata))
	want.Metadata, got.Metadata, want.Now, got.Now = nil, nil, time.Time{}, time.Time{}
	assert.Equal(f, want, got)
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("res/%03d", i)
	}
	return out
}
