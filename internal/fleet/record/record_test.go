package record_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/fleet/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func environment(changes map[string]string) func(string) string {
	values := map[string]string{
		"CRONLATCH_JOB": "j", "CRONLATCH_LOCK": "db/orders", "CRONLATCH_FENCING_TOKEN": "7", "CRONLATCH_RUN_ID": "3",
		"CRONLATCH_ATTEMPT": "2", "CRONLATCH_SCHEDULED_AT": "2026-05-04T12:00:00Z",
	}
	maps.Copy(values, changes)
	return func(name string) string { return values[name] }
}

func TestFromEnviron(t *testing.T) {
	t.Parallel()
	e, err := record.FromEnviron(environment(nil))
	require.NoError(t, err)
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	assert.Equal(t, record.Event{Job: "j", Resource: "db/orders", Token: 7, Run: 3, Attempt: 2, At: at, PID: os.Getpid()}, e)
	for _, name := range []string{"CRONLATCH_FENCING_TOKEN", "CRONLATCH_RUN_ID", "CRONLATCH_ATTEMPT", "CRONLATCH_SCHEDULED_AT"} {
		_, err := record.FromEnviron(environment(map[string]string{name: ""}))
		require.ErrorContains(t, err, name)
	}
}

// Many writers at the same time: every line is there and whole.
func TestLogKeepsEveryLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events")
	const writers, lines = 8, 50
	var wg sync.WaitGroup
	for i := range int64(writers) {
		log, err := record.Open(path)
		require.NoError(t, err)
		wg.Go(func() {
			var errs []error
			for range lines {
				errs = append(errs, log.Write(record.Alive, record.Event{Run: i}))
			}
			assert.NoError(t, errors.Join(append(errs, log.Close())...))
		})
	}
	wg.Wait()
	events, err := record.Read(path)
	require.NoError(t, err)
	count := map[int64]int{}
	last := map[int64]time.Duration{}
	for _, e := range events {
		count[e.Run]++
		assert.GreaterOrEqual(t, e.Boot, last[e.Run])
		last[e.Run] = e.Boot
	}
	for i := range int64(writers) {
		assert.Equal(t, lines, count[i])
	}
}

func TestReadLeavesOutAnUnfinishedLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events")
	none, err := record.Read(path)
	require.NoError(t, err)
	assert.Empty(t, none)
	require.NoError(t, os.WriteFile(path, []byte("{\"run\":1}\n{\"run\":2"), 0o600))
	events, err := record.Read(path)
	require.NoError(t, err)
	assert.Len(t, events, 1)
	require.NoError(t, os.WriteFile(path, []byte("nonsense\n"), 0o600))
	_, err = record.Read(path)
	require.ErrorContains(t, err, "reading event 1")
}

func TestRegisterRefusesOldTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, w := range []record.Write{{Token: 2, Accepted: true}, {Token: 4, Accepted: true}, {Token: 3}, {Token: 4, Accepted: true}} {
		accepted, err := record.Put(dir, "db/orders", record.Write{Token: w.Token})
		require.NoError(t, err)
		assert.Equal(t, w.Accepted, accepted, "token %d", w.Token)
	}
	accepted, err := record.Put(dir, "another", record.Write{Token: 1})
	require.NoError(t, err)
	assert.True(t, accepted)
	all, err := record.Registers(dir)
	require.NoError(t, err)
	assert.Equal(t, map[string][]record.Write{
		"another":   {{Token: 1, Accepted: true}},
		"db/orders": {{Token: 2, Accepted: true}, {Token: 4, Accepted: true}, {Token: 3}, {Token: 4, Accepted: true}},
	}, all)
}
