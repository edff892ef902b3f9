package locking_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/pgserver"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
	"github.com/cronlatch/cronlatch/migrations"
)

const (
	stormEnv     = "CRONLATCH_STORM" // how long each storm lasts, for example 60s
	stormClients = 100               // half of them honest, half of them not
)

func stormLength(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(stormEnv)
	if text == "" {
		return 3 * time.Second
	}
	length, err := time.ParseDuration(text)
	require.NoError(t, err, stormEnv)
	return length
}

// A hundred clients want the same lock, or any of two hundred, on a server whose default is SERIALIZABLE: nobody's
// answer is an error, nobody holds what another holds, and whoever loses writes nothing. Then the same through a pooler.
// The storms follow each other and run before the package's parallel tests, since each wants the whole machine.
//
//nolint:paralleltest // see above
func TestPostgresStorm(t *testing.T) {
	// With the minimal WAL the server writes none by itself while nothing changes.
	server := pgserver.Start(t, pgserver.Setting("default_transaction_isolation", "serializable"),
		pgserver.Setting("autovacuum", "off"), pgserver.Setting("wal_level", "minimal"),
		pgserver.Setting("max_wal_senders", "0"), pgserver.Setting("checkpoint_timeout", "1h"))
	bouncer := pgserver.StartBouncer(t, server)
	admin := dbtest.Open(t, server.URL()).Main
	admin.SetMaxOpenConns(1)
	exec(t, admin, `SET statement_timeout = 0`) // making a database takes a checkpoint, and as long as the disk wants
	making := database.WithTimeout(t.Context(), time.Minute)
	for route, on := range map[string]func(database string) string{"direct": server.On, "pooled": bouncer.On} {
		for _, names := range []int{1, 200} {
			name := fmt.Sprintf("%s_%d", route, names)
			_, err := admin.NewRaw(`CREATE DATABASE ?`, bun.Ident(name)).Exec(making)
			require.NoError(t, err)
			t.Run(name, func(t *testing.T) {
				s := newStorm(t, on(name), server.On(name), names)
				s.rage()
				s.calm()
			})
		}
	}
	errorsOf := errorsByState(server.Log())
	t.Log("errors in the server's log by SQLSTATE:", errorsOf)
	for _, state := range []string{"40001", "25P02", "23505", "40P01"} {
		assert.Zero(t, errorsOf[state], "%s in the server's log", state)
	}
}

// errorsByState counts the lines of a test server's log, which have the SQLSTATE behind the process.
func errorsByState(log string) map[string]int {
	count := make(map[string]int)
	for _, found := range regexp.MustCompile(`(?m)\[\d+\] (\w{5}) (?:ERROR|FATAL|PANIC): `).FindAllStringSubmatch(log, -1) {
		count[found[1]]++
	}
	return count
}

type storm struct {
	*testing.T

	db       *bun.DB // the clients'
	admin    *bun.DB // the same database, without a pooler
	history  *lockingtest.History
	inside   []atomic.Int64 // honest holders of each name, by their own word
	sections atomic.Int64
}

// newStorm has a connection for each client, and each of them may have to wait for all others.
func newStorm(t *testing.T, url, direct string, names int) *storm {
	t.Helper()
	db := patient(t, url)
	db.SetMaxOpenConns(stormClients)
	db.SetMaxIdleConns(stormClients)
	require.NoError(t, migrations.Up(t.Context(), db))
	return &storm{T: t, db: db, admin: dbtest.Open(t, direct).Main, history: lockingtest.Record(newStore(t, db)), inside: make([]atomic.Int64, names)}
}

// name is also what lockingtest.Storm calls its resources: all clients want the same.
func (s *storm) name(i int) string { return fmt.Sprintf("storm/%d", i%len(s.inside)) }

// rage lasts until the time is over and enough has happened, however slow the machine is.
func (s *storm) rage() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), stormLength(s.T)+time.Minute)
	defer cancel()
	var timeIsUp, over atomic.Bool
	timer := time.AfterFunc(stormLength(s.T), func() { timeIsUp.Store(true) })
	defer timer.Stop()
	var honest sync.WaitGroup
	for client := range stormClients / 2 {
		honest.Go(func() {
			for i := client; !over.Load() && ctx.Err() == nil; i++ {
				s.section(ctx, fmt.Sprintf("honest %d", client), i%len(s.inside))
			}
		})
	}
	stats, err := lockingtest.Storm(ctx, lockingtest.StormConfig{
		Store: s.history, Workers: stormClients / 2, Resources: len(s.inside), Rounds: math.MaxInt32, TTL: 2 * time.Millisecond,
		Enough: func(n lockingtest.Stats) bool {
			return timeIsUp.Load() && n.Takeovers > 0 && n.Refusals > 0 && n.Renewals > 0 && n.ZombiesRefused > 0 && s.sections.Load() > 0
		},
	})
	over.Store(true)
	honest.Wait()
	require.NoError(s, err)
	s.Logf("%d honest sections, %+v", s.sections.Load(), stats)
	for _, problem := range s.history.Check() {
		s.Error(problem)
	}
}

// section is what a lock is for. The TTL is longer than any section: inside, nobody else may be.
func (s *storm) section(ctx context.Context, owner string, i int) {
	got, err := s.history.Acquire(ctx, []locking.AcquireRequest{{Resource: s.name(i), Owner: owner, TTL: time.Minute}})
	if err != nil {
		s.Error("acquire:", err)
	}
	if err != nil || !got[0].Acquired {
		return
	}
	assert.EqualValues(s, 1, s.inside[i].Add(1), "holders of %s", s.name(i))
	s.sections.Add(1)
	claim := locking.Claim{Resource: s.name(i), Owner: owner, FencingToken: got[0].Record.FencingToken, TTL: time.Minute}
	renewed, err := s.history.Renew(ctx, []locking.Claim{claim})
	if assert.NoError(s, err) {
		assert.NoError(s, renewed[0].Err)
	}
	s.inside[i].Add(-1)
	released, err := s.history.Release(ctx, []locking.Claim{claim})
	if assert.NoError(s, err) {
		assert.NoError(s, released[0].Err)
	}
}

// calm is the time when one holder has everything, and all others lose: not one byte of WAL.
func (s *storm) calm() {
	s.Helper()
	store := newStore(s.T, s.db)
	for i := range s.inside {
		require.Eventually(s, func() bool { return tryAcquire(s.T, store, s.name(i), "keeper").Acquired }, time.Minute, 5*time.Millisecond)
	}
	exec(s.T, s.db, `UPDATE distributed_locks SET expires_at = expires_at + interval '1 hour'`)
	exec(s.T, s.admin, `VACUUM distributed_locks`) // the readers have no old versions to prune
	s.lose(store)                                  // and no hint bits to set
	require.Eventually(s, func() bool {
		before := walPosition(s.T, s.db)
		s.lose(store)
		return walPosition(s.T, s.db) == before
	}, time.Minute, time.Second, "losing attempts wrote WAL")
}

func (s *storm) lose(store locking.Store) {
	s.Helper()
	const attempts = 5
	var clients sync.WaitGroup
	for client := range stormClients {
		clients.Go(func() {
			for k := range attempts {
				got, err := store.Acquire(s.Context(), []locking.AcquireRequest{
					{Resource: s.name(client*attempts + k), Owner: fmt.Sprintf("loser %d", client), TTL: time.Minute},
				})
				if assert.NoError(s, err) {
					assert.False(s, got[0].Acquired)
				}
			}
		})
	}
	clients.Wait()
}
