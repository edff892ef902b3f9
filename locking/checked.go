package locking

import (
	"context"
	"encoding/json"
	"time"
)

// Checked returns a Store that refuses bad arguments (ErrInvalid) before s sees them: what a database would silently
// rewrite or choke on in the middle of a batch never reaches it. NewStore's stores are checked; a store of your own
// should be wrapped the same way.
func Checked(s Store) Store { return &checked{s} }

type checked struct{ Store }

func (c *checked) Acquire(ctx context.Context, reqs []AcquireRequest) ([]AcquireResult, error) {
	names := make(map[string]bool, len(reqs))
	for i := range reqs {
		if err := reqs[i].validate(); err != nil {
			return nil, err
		}
		if err := once(names, reqs[i].Resource); err != nil {
			return nil, err
		}
	}
	if len(reqs) == 0 {
		return nil, nil
	}
	return c.Store.Acquire(ctx, withMetadata(reqs))
}

func (c *checked) Renew(ctx context.Context, claims []Claim) ([]ClaimResult, error) {
	if err := validateClaims(claims, true); err != nil || len(claims) == 0 {
		return nil, err
	}
	return c.Store.Renew(ctx, claims)
}

func (c *checked) Release(ctx context.Context, claims []Claim) ([]ClaimResult, error) {
	if err := validateClaims(claims, false); err != nil || len(claims) == 0 {
		return nil, err
	}
	return c.Store.Release(ctx, claims)
}

func (c *checked) Get(ctx context.Context, resource string) (Record, error) {
	if err := ValidateResource(resource); err != nil {
		return Record{}, err
	}
	return c.Store.Get(ctx, resource)
}

func (c *checked) List(ctx context.Context, f ListFilter) ([]Record, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	return c.Store.List(ctx, f.withDefaults())
}

func (c *checked) ForceRelease(ctx context.Context, f Force) (Record, error) {
	if err := f.validate(); err != nil {
		return Record{}, err
	}
	return c.Store.ForceRelease(ctx, f)
}

func (c *checked) Purge(ctx context.Context, olderThan time.Duration, limit int) (int, error) {
	if err := validatePurge(olderThan, limit); err != nil {
		return 0, err
	}
	return c.Store.Purge(ctx, olderThan, limit)
}

func validateClaims(claims []Claim, renewal bool) error {
	names := make(map[string]bool, len(claims))
	for _, c := range claims {
		if err := c.validate(renewal); err != nil {
			return err
		}
		if err := once(names, c.Resource); err != nil {
			return err
		}
	}
	return nil
}

// once refuses a second request for one resource: an upsert cannot touch a row twice, and the second would read the
// first's answer.
func once(seen map[string]bool, resource string) error {
	if seen[resource] {
		return invalid("resource", "%q occurs twice in one batch", resource)
	}
	seen[resource] = true
	return nil
}

// withMetadata gives every request a metadata object, in a copy: the caller's slice stays as it is.
func withMetadata(reqs []AcquireRequest) []AcquireRequest {
	out := append([]AcquireRequest(nil), reqs...)
	for i := range out {
		if len(out[i].Metadata) == 0 {
			out[i].Metadata = json.RawMessage("{}")
		}
	}
	return out
}
