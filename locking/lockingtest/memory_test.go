package lockingtest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bootClock tells the time without time.Now, which is forbidden around locks.
func bootClock() time.Time { return time.Unix(1_700_000_000, 0).Add(boottime.Now()) }

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	lockingtest.Run(t, func(t *testing.T) lockingtest.Backend {
		t.Helper()
		m := lockingtest.NewMemory(bootClock)
		return lockingtest.Backend{
			Store:  m,
			Age:    func(_ *testing.T, resource string, d time.Duration) { m.Age(resource, d) },
			Reopen: func(*testing.T) locking.Store { return m }, // memory does not survive more
		}
	})
}
