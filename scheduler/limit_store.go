package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
)

// tagCount is how many runs with a limited tag are running in the fleet.
type tagCount struct {
	Tag string `bun:"tag"`
	N   int    `bun:"n"`
}

// withinLimits keeps the candidates that the limits of their tags have room for, the oldest first. It counts while it
// holds the counters of these tags, so that two claimers never count the same free place: the second one waits, and then
// sees what the first one has marked. Runs that end meanwhile only make room.
func (s *store) withinLimits(ctx context.Context, tx bun.Tx, candidates []jobs.Run) ([]jobs.Run, error) {
	tags := map[string]bool{}
	for _, c := range candidates {
		for tag := range c.Limits {
			tags[tag] = true
		}
	}
	if len(tags) == 0 {
		return candidates, nil
	}
	if err := s.lockTags(ctx, tx, slices.Sorted(maps.Keys(tags))); err != nil {
		return nil, err
	}
	var counts []tagCount
	if err := tx.NewRaw(s.q.countTags).Scan(ctx, &counts); err != nil {
		return nil, fmt.Errorf("counting the runs of limited tags: %w", err)
	}
	used := make(map[string]int, len(counts))
	for _, c := range counts {
		used[c.Tag] = c.N
	}
	return slices.DeleteFunc(candidates, func(r jobs.Run) bool { return !reserve(used, r.Limits) }), nil
}

// reserve takes a place for each tag, or none when one of them has no room.
func reserve(used, limits map[string]int) bool {
	for tag, limit := range limits {
		if used[tag] >= limit {
			return false
		}
	}
	for tag := range limits {
		used[tag]++
	}
	return true
}

// lockTags holds the counters of the tags until the transaction ends, in ascending order like everybody.
func (s *store) lockTags(ctx context.Context, tx bun.Tx, tags []string) error {
	if s.q.lockTags == "" {
		return nil
	}
	if _, err := tx.NewRaw(s.q.addTags, encode(tags)).Exec(ctx); err != nil {
		return fmt.Errorf("adding counters of limited tags: %w", err)
	}
	var locked []tagCount
	if err := tx.NewRaw(s.q.lockTags, encode(tags)).Scan(ctx, &locked); err != nil {
		return fmt.Errorf("locking the counters of limited tags: %w", err)
	}
	return nil
}

// withoutDone gives back what was done meanwhile: a success between the choice of the candidates and the grant of their
// locks has written its marker before its lock was released. Such a run stays pending, and is settled as skipped.
func (s *store) withoutDone(ctx context.Context, tx bun.Tx, won []claimed) ([]claimed, error) {
	var ids []int64
	for i := range won {
		if won[i].run.OncePer == jobs.OncePerResource {
			ids = append(ids, won[i].run.ID)
		}
	}
	if len(ids) == 0 {
		return won, nil
	}
	var done []replacedRow
	if err := tx.NewRaw(s.q.done, encode(ids)).Scan(ctx, &done); err != nil {
		return nil, fmt.Errorf("looking for resources that are done: %w", err)
	}
	if len(done) == 0 {
		return won, nil
	}
	var back []locking.Claim
	won = slices.DeleteFunc(won, func(c claimed) bool {
		if !slices.ContainsFunc(done, func(d replacedRow) bool { return d.ID == c.run.ID }) {
			return false
		}
		back = append(back, locking.Claim{Resource: c.run.Resource, Owner: c.lock.Owner, FencingToken: c.lock.FencingToken})
		return true
	})
	locks, err := locking.NewStore(tx)
	if err != nil {
		return nil, err
	}
	if _, err := locks.Release(ctx, back); err != nil {
		return nil, fmt.Errorf("releasing the locks of what is done: %w", err)
	}
	return won, nil
}

// addMarker remembers that a run has succeeded with its resource.
func (s *store) addMarker(ctx context.Context, tx bun.Tx, run *jobs.Run) error {
	if run.OncePer != jobs.OncePerResource || run.Outcome != jobs.OutcomeSucceeded {
		return nil
	}
	if _, err := tx.NewRaw(s.q.addMarker, run.ID).Exec(ctx); err != nil {
		return fmt.Errorf("marking a resource as done: %w", err)
	}
	return nil
}
