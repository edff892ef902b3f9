package scheduler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func (b *bench) drain(r DrainRequest) []ReplicaRow {
	rows, err := RequestDrain(b.ctx(), b.db, r)
	require.NoError(b.t, err)
	return rows
}

// A drained replica starts nothing, and its row says so; when that is taken back it starts what is due.
func TestADrainedReplicaClaimsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		u := b.unit("hash", j)
		require.NoError(b.t, u.beat(b.ctx(), false))
		rows := b.drain(DrainRequest{Replica: "a", Reason: "kernel", By: "ops@h"})
		require.Len(b.t, rows, 1)
		assert.Equal(b.t, []any{"ops@h", "kernel", false}, []any{rows[0].DrainAskedBy, rows[0].DrainReason, rows[0].Draining})
		assert.False(b.t, rows[0].DrainAskedAt.IsZero())
		run := b.put(b.due(j, time.Second))[0]
		require.NoError(b.t, u.work(b.ctx()))
		assert.True(b.t, u.Draining())
		assert.Equal(b.t, jobs.StatePending, b.get(run.ID).State)
		assert.Len(b.t, u.changed, 1, "its row is to be written now")

		b.drain(DrainRequest{Replica: "a", Undrain: true, By: "ops@h"})
		require.NoError(b.t, u.work(b.ctx()))
		assert.False(b.t, u.Draining())
		(<-u.started).Stop()
		u.active.wg.Wait()
		assert.Equal(b.t, jobs.StateFinished, b.get(run.ID).State)
		assertDrainsAudited(b)
	})
}

func assertDrainsAudited(b *bench) {
	l, err := OpenAuditLog(b.db)
	require.NoError(b.t, err)
	entries, _, err := l.List(b.ctx(), auditBy(AuditByAction, "replica.*"))
	require.NoError(b.t, err)
	require.Len(b.t, entries, 2)
	assert.Equal(b.t, []string{"replica.undrain", "user", "ops@h", "a", ""}, []string{
		entries[0].Action, entries[0].ActorType, entries[0].ActorID, entries[0].Replica, entries[0].Reason,
	})
	assert.Equal(b.t, []string{"replica.drain", "kernel"}, []string{entries[1].Action, entries[1].Reason})
}

// The request is the process's: it outlives an outage, and another process of the same name begins without it.
func TestADrainIsForOneProcess(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		u := b.unit("hash")
		require.NoError(b.t, u.beat(b.ctx(), false))
		b.drain(DrainRequest{Replica: "a", By: "ops@h"})
		u.o.TTL = 0 // the next beat comes too late, and begins another lifetime
		require.NoError(b.t, u.beat(b.ctx(), false))
		require.NoError(b.t, u.work(b.ctx()))
		assert.True(b.t, u.Draining())
		rows, err := Replicas(b.ctx(), b.db, time.Hour)
		require.NoError(b.t, err)
		require.Len(b.t, rows, 1)
		assert.Equal(b.t, "ops@h", rows[0].DrainAskedBy)

		other := b.unit("hash")
		other.who.Nonce, other.Scheduler.store.nonce = "other", "other"
		require.NoError(b.t, other.beat(b.ctx(), false))
		require.NoError(b.t, other.work(b.ctx()))
		assert.False(b.t, other.Draining())
		assert.Len(b.t, b.drain(DrainRequest{Replica: "a", Undrain: true, By: "ops@h"}), 2, "all processes of the name")
		require.NoError(b.t, u.work(b.ctx()))
		assert.False(b.t, u.Draining())
	})
}

// What runs goes on, and the row tells when it is over.
func TestADrainLetsRunsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		j := named("j", nil)(b.t)
		u := b.unit("hash", j)
		require.NoError(b.t, u.beat(b.ctx(), false))
		run := b.put(b.due(j, time.Second))[0]
		require.NoError(b.t, u.work(b.ctx()))
		p := <-u.started
		b.drain(DrainRequest{Replica: "a", By: "ops@h"})
		require.NoError(b.t, u.work(b.ctx()))
		require.NoError(b.t, u.beat(b.ctx(), u.Draining()))
		<-u.changed
		assert.Equal(b.t, []any{1, true}, b.rowSays())
		require.NoError(b.t, u.work(b.ctx()))
		assert.Empty(b.t, u.changed, "nothing is new")
		p.Stop()
		u.active.wg.Wait()
		assert.Equal(b.t, jobs.OutcomeSucceeded, b.get(run.ID).Outcome)
		require.NoError(b.t, u.work(b.ctx()))
		assert.Len(b.t, u.changed, 1)
		require.NoError(b.t, u.beat(b.ctx(), u.Draining()))
		assert.Equal(b.t, []any{0, true}, b.rowSays())
	})
}

// rowSays is what the only replica says of itself: how many runs it has, and whether it drains.
func (b *bench) rowSays() []any {
	rows, err := Replicas(b.ctx(), b.db, time.Hour)
	require.NoError(b.t, err)
	require.Len(b.t, rows, 1)
	return []any{rows[0].Running, rows[0].Draining}
}

func TestNobodyDrainsAStranger(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		require.NoError(b.t, b.unit("hash").beat(b.ctx(), false))
		_, err := RequestDrain(b.ctx(), b.db, DrainRequest{Replica: "b", By: "x"})
		missing, ok := errors.AsType[*NoReplicaError](err)
		require.True(b.t, ok, err)
		assert.Equal(b.t, []string{"a"}, missing.There)
	})
}

// The audit is read page by page, the newest first; every filter narrows it.
func TestTheAuditIsListed(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		l, err := OpenAuditLog(b.db)
		require.NoError(b.t, err)
		for i, e := range []AuditEntry{
			{Action: "job.pause", ActorID: "x", Job: "j"},
			{Action: "job.resume", ActorID: "y", Job: "j", RunID: 7, FencingToken: 9},
			{Action: "replica.drain", ActorID: "x", Replica: "a", Detail: []byte(`{"n": 1}`)},
		} {
			e.Outcome, e.ActorType = "success", "user"
			require.NoError(b.t, l.Add(b.ctx(), &e), i)
		}
		list := func(f AuditFilter) (actions []string) {
			entries, now, err := l.List(b.ctx(), f)
			require.NoError(b.t, err)
			for _, e := range entries {
				actions = append(actions, e.Action)
				assert.False(b.t, e.At.After(now))
			}
			return actions
		}
		all := []string{"replica.drain", "job.resume", "job.pause"}
		assert.Equal(b.t, all, list(AuditFilter{}))
		assert.Equal(b.t, all[1:], list(auditBy(AuditByAction, "job.*")))
		assert.Equal(b.t, all[2:], list(auditBy(AuditByAction, "job.pause")))
		assert.Empty(b.t, list(auditBy(AuditByAction, "job.")))
		assert.Equal(b.t, []string{all[0], all[2]}, list(auditBy(AuditByActor, "x")))
		assert.Equal(b.t, all[1:], list(auditBy(AuditByJob, "j")))
		assert.Equal(b.t, all[1:2], list(auditBy(AuditByRun, "7")))
		assert.Equal(b.t, all[:1], list(auditBy(AuditByReplica, "a")))
		assert.Equal(b.t, all, list(AuditFilter{Since: b.clock().Add(-time.Hour), Until: b.clock()}))
		assert.Empty(b.t, list(AuditFilter{Since: b.clock().Add(time.Minute)}))
		assert.Empty(b.t, list(AuditFilter{Until: b.clock().Add(-time.Hour)}))

		var paged []string
		f := AuditFilter{Limit: 1}
		for range all {
			entries, _, err := l.List(context.WithoutCancel(b.ctx()), f)
			require.NoError(b.t, err)
			require.Len(b.t, entries, 1)
			paged, f.After = append(paged, entries[0].Action), AuditCursor{entries[0].At, entries[0].ID}
		}
		assert.Equal(b.t, all, paged)
		assert.Empty(b.t, list(f))
	})
}
