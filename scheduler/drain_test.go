package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
)

// A replica that drains for an hour still ends at once what somebody wants to end.
func TestADrainObeysRequestsToEnd(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		u := b.unit("one", named("j", nil)(b.t))
		core, lines := observer.New(zap.InfoLevel)
		u.o.Audit, u.o.DrainTimeout = zap.New(core), time.Hour
		run := b.put(b.due(named("j", nil)(b.t), time.Second))[0]
		leave := u.run()
		u.begins()
		left := make(chan struct{})
		go func() { leave(); close(left) }()
		require.Eventually(b.t, func() bool {
			return lines.FilterField(zap.String("event.action", string(audit.ReplicaDrain))).Len() == 1
		}, patience, 10*time.Millisecond)
		require.NoError(b.t, b.tx(b.ctx(), func(tx bun.Tx) error {
			return b.askToEnd(b.ctx(), tx, []endRequest{{run.ID, jobs.ReasonRequested, detail(nil)}})
		}))
		select {
		case <-left:
		case <-time.After(patience):
			u.Hurry()
			<-left
			require.Fail(b.t, "the drain did not look")
		}
		assert.Equal(b.t, jobs.StateFinished, b.get(run.ID).State)
	})
}
