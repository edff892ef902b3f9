package daemon

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
	"github.com/cronlatch/cronlatch/scheduler"
)

// pruneLog notes what it is asked to keep.
type pruneLog struct {
	mu    sync.Mutex // the times of a bubble order nothing for the race detector
	asked []scheduler.Keeping
	done  scheduler.Pruned
	err   error
}

func (p *pruneLog) Prune(_ context.Context, k *scheduler.Keeping) (scheduler.Pruned, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, *k)
	return p.done, p.err
}

// A few minutes after the start, then about every hour, with the jobs that are known then; what fails is tried again.
func TestHistoryIsDeletedNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zapcore.InfoLevel)
		store := &pruneLog{done: scheduler.Pruned{Runs: 7}}
		known := []*jobs.Job{{Name: "a"}}
		p := &purger{
			store: lockingtest.NewMemory(time.Now), keepFor: time.Hour, log: zap.NewNop(),
			history: &historian{store: store, log: zap.New(core), keeping: func() *scheduler.Keeping {
				store.mu.Lock()
				defer store.mu.Unlock()
				return &scheduler.Keeping{Jobs: known}
			}},
		}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { p.run(ctx) })
		time.Sleep(2 * purgeFirst)
		synctest.Wait()
		require.Len(t, store.asked, 1)
		assert.Equal(t, known, store.asked[0].Jobs)
		assert.Equal(t, 1, lines.FilterMessage("deleted old history").FilterField(zap.Int("runs", 7)).Len())

		store.mu.Lock()
		known = []*jobs.Job{{Name: "b"}} // a reload
		store.done, store.err = scheduler.Pruned{}, errors.New("away")
		store.mu.Unlock()
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		assert.Greater(t, len(store.asked), 6)
		assert.Equal(t, known, store.asked[1].Jobs)
		assert.Equal(t, len(store.asked)-1, lines.FilterMessage("old history could not be deleted").Len())
		assert.Equal(t, 1, lines.FilterMessage("deleted old history").Len(), "nothing is not worth a line")
		stop()
		wg.Wait()
	})
}

func TestADaemonDeletesItsHistory(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	store, err := locking.NewStore(db.Main)
	require.NoError(t, err)
	d := &Daemon{o: Options{Config: &configs.Config{}, Log: zap.NewNop()}, config: &configs.Config{}}
	p, err := d.purger(store, db)
	require.NoError(t, err)
	_, err = db.Main.NewRaw(`INSERT INTO outbox (key, channel, event, state, created_at, due_at, done_at) VALUES ('k', 'c', 'e', 'sent', 0, 0, 0)`).
		Exec(t.Context())
	require.NoError(t, err)
	p.history.prune(t.Context())
	var left int
	require.NoError(t, db.Main.NewRaw(`SELECT count(*) FROM outbox`).Scan(t.Context(), &left))
	assert.Zero(t, left)
}
