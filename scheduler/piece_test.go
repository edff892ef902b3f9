package scheduler

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// A database that manages five schedules in time, and sixty that are due again each second: each is planned in the end, and
// when the database is fast again, all are planned at once.
func TestABacklogIsPlannedInPieces(t *testing.T) {
	t.Parallel()
	const all, manages = 60, 5
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	plans := make([]*planned, all)
	for i := range plans {
		plans[i] = &planned{next: start}
	}
	var p piece
	left := all
	for at, tries := start, 0; left > 0 && tries < 100; tries++ {
		due := p.of(plans)
		if len(due) > manages {
			p.tried(len(due), context.DeadlineExceeded)
			continue
		}
		p.tried(len(due), nil)
		at = at.Add(time.Second)
		left = 0
		for _, d := range due {
			d.next = at
		}
		for _, d := range plans {
			if d.next.Equal(start) {
				left++
			}
		}
	}
	assert.Zero(t, left, "the furthest behind come first, so none waits for ever")
	for len(p.of(plans)) < all {
		p.tried(len(p.of(plans)), nil)
	}
	assert.Len(t, p.of(plans), all)
}

func TestAPieceIsNeverEmpty(t *testing.T) {
	t.Parallel()
	var p piece
	for range 3 {
		p.tried(1, context.DeadlineExceeded)
	}
	assert.Len(t, p.of([]*planned{{}, {}}), 1)
	p.tried(1, nil)
	assert.Len(t, p.of([]*planned{{}, {}}), 2)
	p.tried(1, nil)
	assert.Equal(t, piece{}, p, "nothing was left, so the next plan takes all again")
}

// A plan that fails is followed by one of half as many schedules, and in the end all are planned.
func TestAPlanThatFailsIsTriedInPieces(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		var known []*jobs.Job
		for _, name := range []string{"a", "b", "c", "d"} {
			known = append(known, named(name, nil)(b.t))
		}
		u := b.unit("hash", known...)
		_, err := u.look(b.ctx()) // what time it is
		require.NoError(b.t, err)
		_, err = u.planDue(b.ctx())
		require.NoError(b.t, err)
		for _, p := range u.plans {
			u.back(p, 10*time.Minute)
		}
		failing, cancel := context.WithCancel(b.ctx())
		cancel()
		_, err = u.planDue(failing)
		require.Error(b.t, err)
		for _, want := range []int{2, 4} {
			_, err = u.planDue(b.ctx())
			require.NoError(b.t, err)
			planned := map[string]bool{}
			for _, r := range u.all() {
				planned[r.Job] = true
			}
			assert.Len(b.t, planned, want)
		}
	})
}
