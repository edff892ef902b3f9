package notify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/migrations"
	"github.com/cronlatch/cronlatch/scheduler"
)

// testLease is shorter than a try: what is being sent must be kept.
const testLease = scheduler.ShortestOutboxLease

// stage is an outbox on a SQLite file, in a bubble: the database's clock is the bubble's.
type stage struct {
	t      *testing.T
	url    string
	db     *database.DB
	began  time.Time
	logs   *observer.ObservedLogs
	log    *zap.Logger
	audits *observer.ObservedLogs
	audit  *zap.Logger

	others int // contexts that end with that of a sender: the more of them, the later one hears of the end after another
	mu     sync.Mutex
	heard  []string // a line for each try: when, by whom, how many messages
	n      int
	// answer is what the channel answers; nil is that it takes everything at once.
	answer func(ctx context.Context, who string) error
}

func inABubble(t *testing.T, f func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir, err := os.MkdirTemp("/dev/shm", "cronlatch-notify-") //nolint:usetesting // commits should not wait for a disk
		if err != nil {
			dir = t.TempDir()
		}
		t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
		s := &stage{t: t, url: "sqlite:" + filepath.Join(dir, "cronlatch.db"), began: time.Now()}
		s.db = dbtest.Open(t, s.url)
		require.NoError(t, migrations.Up(t.Context(), s.db.Main))
		var core zapcore.Core
		core, s.logs = observer.New(zapcore.DebugLevel)
		s.log = zap.New(core)
		core, s.audits = observer.New(zapcore.DebugLevel)
		s.audit = zap.New(core)
		f(t, s)
	})
}

// write puts a message into the outbox.
func (s *stage) write(channel string) {
	s.n++
	job := "j"
	if channel == scheduler.PingChannel { // those of one job go one after the other
		job += strconv.Itoa(s.n)
	}
	_, err := s.db.Main.NewRaw(`INSERT INTO outbox (key, channel, event, job, run_id, payload, created_at, due_at)
		VALUES (?, ?, 'failure', ?, ?, ?, ?, ?)`, strconv.FormatInt(int64(s.n), 10), channel, job, s.n,
		fmt.Sprintf(`{"id": "m%d", "event": "failure", "job": "j", "run_id": %d, "text": "t"}`, s.n, s.n),
		time.Now().UnixMilli(), time.Now().UnixMilli()).Exec(s.t.Context())
	require.NoError(s.t, err)
}

// join starts a sender on a connection of its own; the returned function ends it.
func (s *stage) join(who string, channels ...string) (leave func()) {
	db := dbtest.Open(s.t, s.url)
	outbox, err := scheduler.OpenOutbox(db.Main)
	require.NoError(s.t, err)
	known := map[string]jobs.Channel{}
	pinged := make([]*jobs.Job, 20)
	for i := range pinged {
		pinged[i] = &jobs.Job{Name: "j" + strconv.Itoa(i), Ping: "https://ping.example/x"}
	}
	for _, name := range channels {
		known[name] = jobs.Channel{Name: name}
	}
	sender := NewSender(Options{
		Outbox: outbox, Channels: func() map[string]jobs.Channel { return known },
		Jobs: func() []*jobs.Job { return pinged }, Check: func(context.Context) error { return nil },
		Replica: who, Nonce: "1", Lease: testLease, Log: s.log, Audit: s.audit,
	})
	sender.send = func(ctx context.Context, ch *jobs.Channel, messages []scheduler.Message) error {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		return s.tried(ctx, who, fmt.Sprintf("%s %d", ch.Name, len(messages)))
	}
	sender.ping = func(ctx context.Context, _ *jobs.Job, m *scheduler.Message) error {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		return s.tried(ctx, who, "ping "+m.ID)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	for range s.others {
		_, end := context.WithCancel(ctx)
		s.t.Cleanup(end)
	}
	over := make(chan struct{})
	go func() { defer close(over); sender.Run(ctx) }()
	return func() { cancel(); <-over }
}

func (s *stage) tried(ctx context.Context, who, what string) error {
	s.mu.Lock()
	s.heard = append(s.heard, fmt.Sprintf("%s %s: %s", time.Since(s.began).Round(time.Second), who, what))
	s.mu.Unlock()
	if s.answer == nil {
		return nil
	}
	return s.answer(ctx, who)
}

// age makes all messages older.
func (s *stage) age(by time.Duration) {
	_, err := s.db.Main.NewRaw("UPDATE outbox SET created_at = created_at - ?", by.Milliseconds()).Exec(s.t.Context())
	require.NoError(s.t, err)
}

func (s *stage) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.heard...)
}

func (s *stage) states() (states []string) {
	require.NoError(s.t, s.db.Main.NewRaw("SELECT state || ' ' || attempts FROM outbox ORDER BY id").Scan(s.t.Context(), &states))
	return states
}
