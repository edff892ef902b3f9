package fleet

import (
	"context"
	"fmt"
	neturl "net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/netfault"
	"github.com/cronlatch/cronlatch/locking"
)

// blackHolesEnv says how many holders are black-holed; the default is 20.
const blackHolesEnv = "CRONLATCH_FLEET_BLACKHOLES"

// P3: a holder whose connection swallows everything is told to stop before a rival that asks all the time can acquire.
// All holders at the same time, each behind a proxy of its own. Holders and rivals are one process here, and who gets no
// processor time for longer than the margin cannot be told in time: the test does not run beside the package's others.
//
//nolint:paralleltest // see above
func TestBlackHoledHolders(t *testing.T) {
	holders := 20
	if text := os.Getenv(blackHolesEnv); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		holders = n
	}
	url := dbtest.PostgresURL(t)
	rival, err := locking.NewStore(dbtest.Open(t, url).Main)
	require.NoError(t, err)
	ends := make([]ending, holders)
	var wg sync.WaitGroup
	for i := range holders {
		h := hold(t, url, fmt.Sprintf("job:%d", i))
		wg.Go(func() { ends[i] = h.end(rival) })
	}
	wg.Wait()
	smallest := time.Hour
	for i, e := range ends {
		require.NoError(t, e.err)
		margin := e.granted - e.canceled
		assert.Positive(t, margin, "holder %d was told %s after its rival had asked and got the lock", i, -margin)
		require.ErrorIs(t, e.cause, locking.ErrLost)
		assert.Less(t, e.token, e.rivalToken)
		smallest = min(smallest, margin)
	}
	t.Logf("%d of %d holders were told in time; the closest rival asked %s later", holders, holders, smallest)
}

// holder holds a lock through a proxy.
type holder struct {
	proxy *netfault.Proxy
	lock  *locking.Lock
}

func hold(t *testing.T, url, resource string) holder {
	t.Helper()
	server, err := neturl.Parse(url)
	require.NoError(t, err)
	proxy := netfault.Listen(t, server.Host)
	db := dbtest.Open(t, strings.Replace(url, server.Host, proxy.Addr(), 1))
	locker, err := locking.Open(db.Main, locking.RenewOn(db.Renew), locking.DefaultLease(roomyTTL))
	require.NoError(t, err)
	t.Cleanup(locker.Close)
	extended := make(chan struct{}, 1)
	lock, err := locker.Acquire(t.Context(), resource, locking.OnExtend(func(time.Duration, time.Duration) {
		select {
		case extended <- struct{}{}:
		default:
		}
	}))
	require.NoError(t, err)
	<-extended // the lock is kept
	return holder{proxy, lock}
}

// ending is what happened to a holder, on the boot clock.
type ending struct {
	canceled, granted time.Duration // granted: when the rival sent the request that was granted
	cause             error
	token, rivalToken int64
	err               error
}

// end breaks the holder's connection and lets a rival poll until it is granted the lock.
func (h holder) end(rival locking.Store) (e ending) {
	e.token = h.lock.FencingToken()
	h.proxy.BlackHole()
	var told sync.WaitGroup
	told.Go(func() {
		<-h.lock.Context().Done()
		e.canceled = boottime.Now()
		e.cause = context.Cause(h.lock.Context())
	})
	e.granted, e.rivalToken, e.err = compete(rival, h.lock.Resource())
	told.Wait()
	return e
}

// compete asks every few milliseconds, but not so often that the rivals alone keep the machine busy.
func compete(rival locking.Store, resource string) (sent time.Duration, token int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	owner := locking.NewOwner()
	for ; ; <-tick.C {
		sent = boottime.Now()
		res, err := rival.Acquire(ctx, []locking.AcquireRequest{{Resource: resource, Owner: owner, TTL: time.Minute}})
		if err != nil {
			return 0, 0, err
		}
		if res[0].Acquired {
			return sent, res[0].Record.FencingToken, nil
		}
	}
}
