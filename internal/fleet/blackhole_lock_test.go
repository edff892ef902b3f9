package fleet

import (
	"bytes"
	"context"
	"fmt"
	neturl "net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/internal/netfault"
)

// wrappedCommands is how many commands are cut off from the database at the same time.
const wrappedCommands = 20

// P3 and P4 for `cronlatch lock`: a command whose wrapper's connection swallows everything, and which ignores SIGTERM, is
// dead before the command of a rival that waits for the lock starts. The commands themselves write down when they lived;
// a grandchild in a session of its own does, too. Forty wrappers with their supervisors want the machine: the test does not
// run beside the package's others, and its TTL leaves a renewal 600 ms.
//
//nolint:paralleltest // see above
func TestBlackHoledCommands(t *testing.T) {
	f := New(t, dbtest.PostgresURL(t), Settings{})
	var wg sync.WaitGroup
	proxies := make([]*netfault.Proxy, wrappedCommands)
	wrapped := make([]*wrapper, wrappedCommands)
	for i := range wrapped {
		proxies[i] = netfault.Listen(t, serverOf(t, f.url))
		wrapped[i] = f.wrap(i, strings.Replace(f.url, serverOf(t, f.url), proxies[i].Addr(), 1),
			[]string{"--ttl", roomyTTL.String(), "--kill-after", "200ms"}, "-for", "3m", "-ignore-term", "-grandchild")
	}
	until(t, "all commands and their grandchildren run", 4*patience, func() bool { return len(roles(f.Events())) == 2*wrappedCommands })
	rivals := make([]*wrapper, wrappedCommands)
	for i := range rivals {
		rivals[i] = f.wrap(i, f.url, []string{"--wait", (2 * patience).String()})
		proxies[i].BlackHole()
	}
	for i := range rivals {
		wg.Go(func() { assert.Zero(t, rivals[i].wait(), "rival %d: %s", i, &rivals[i].output) })
		wg.Go(func() { assert.Equal(t, 76, wrapped[i].wait(), "wrapper %d: %s", i, &wrapped[i].output) })
	}
	wg.Wait()
	events := f.Events()
	require.NoError(t, check.Exclusive(events))
	assert.Len(t, roles(events), 3*wrappedCommands)
	smallest := smallestGap(t, events)
	t.Logf("%d of %d commands were dead before their rival's began; the closest was %s", wrappedCommands, wrappedCommands, smallest)
	assert.Positive(t, smallest)
}

// wrapper is a `cronlatch lock` with a recorder under it.
type wrapper struct {
	cmd    *exec.Cmd
	output bytes.Buffer
}

// wrap starts `cronlatch lock` on the i-th resource.
func (f *Fleet) wrap(i int, url string, flags []string, recorder ...string) *wrapper {
	f.tb.Helper()
	args := append(append([]string{"lock", fmt.Sprintf("job:%d", i)}, flags...), "--config", f.config(), "--", f.programs.recorder)
	w := &wrapper{cmd: exec.CommandContext(context.Background(), f.programs.daemon, append(args, recorder...)...)}
	w.cmd.Env = f.command().Env
	w.cmd.Env = append(w.cmd.Env, "DATABASE_URL="+url, "FLEET_DIR="+f.dir, "FLEET_JOB=yes", "CRONLATCH_JOB=wrapped",
		"CRONLATCH_RUN_ID="+strconv.Itoa(i+1), "CRONLATCH_ATTEMPT=1", "CRONLATCH_SCHEDULED_AT=2026-05-04T12:00:00Z")
	w.cmd.Dir = f.dir
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.cmd.Stdout, w.cmd.Stderr = &w.output, &w.output
	f.must(w.cmd.Start())
	f.tb.Cleanup(func() {
		if w.cmd.ProcessState == nil {
			_ = w.cmd.Process.Kill()
			_ = w.cmd.Wait()
		}
	})
	return w
}

func (w *wrapper) wait() int {
	_ = w.cmd.Wait() // how it ended is in its state
	return w.cmd.ProcessState.ExitCode()
}

func serverOf(t *testing.T, url string) string {
	t.Helper()
	u, err := neturl.Parse(url)
	require.NoError(t, err)
	return u.Host
}

// roles are the processes that have begun.
func roles(events []record.Event) map[string]bool {
	all := map[string]bool{}
	for i := range events {
		all[events[i].Resource+" "+events[i].Role+" "+strconv.FormatInt(events[i].Token, 10)] = true
	}
	return all
}

// smallestGap is the shortest time between the last sign of life under an older token and the start under the newer one.
func smallestGap(t *testing.T, events []record.Event) time.Duration {
	t.Helper()
	oldest, last, first := map[string]int64{}, map[string]time.Duration{}, map[string]time.Duration{}
	for i := range events {
		if e := &events[i]; oldest[e.Resource] == 0 || e.Token < oldest[e.Resource] {
			oldest[e.Resource] = e.Token
		}
	}
	for i := range events {
		e := &events[i]
		if e.Token == oldest[e.Resource] {
			last[e.Resource] = max(last[e.Resource], e.Boot)
		} else if e.Kind == record.Start && (first[e.Resource] == 0 || e.Boot < first[e.Resource]) {
			first[e.Resource] = e.Boot
		}
	}
	smallest := time.Hour
	for resource, at := range first {
		smallest = min(smallest, at-last[resource])
	}
	require.Len(t, first, wrappedCommands)
	return smallest
}
