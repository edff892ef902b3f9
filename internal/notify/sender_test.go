package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// The first message goes at once; what follows within 5 s goes as one.
func TestWhatComesTogetherGoesAsOne(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		defer s.join("a", "ops")()
		defer s.join("b", "ops")()
		time.Sleep(10 * time.Second)
		s.write("ops")
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			s.write("ops")
		}
		time.Sleep(time.Minute)
		got := s.lines()
		require.Len(t, got, 2, got)
		var first, second int
		_, err := fmt.Sscanf(strings.SplitAfter(got[0], "ops ")[1]+" "+strings.SplitAfter(got[1], "ops ")[1], "%d %d", &first, &second)
		require.NoError(t, err)
		assert.Equal(t, 31, first+second)
		assert.Greater(t, second, 15)
	})
}

// A channel that does not work is tried with growing pauses for a day, and the others do not wait for it.
func TestAMessageIsTriedForADay(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		s.answer = func(context.Context, string) error { return errors.New("the server answered 500") }
		defer s.join("a", "ops")()
		s.write("ops")
		time.Sleep(70 * time.Minute) // a look a second: a day of them takes long
		assert.Contains(t, s.states()[0], "pending ")
		s.age(24 * time.Hour)
		_, err := s.db.Main.NewRaw("UPDATE outbox SET due_at = 0").Exec(t.Context())
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		got := s.lines()
		var last time.Duration
		var pauses []time.Duration
		for _, line := range got {
			at, err := time.ParseDuration(strings.Fields(line)[0])
			require.NoError(t, err)
			pauses, last = append(pauses, at-last), at
		}
		for i, longest := range []time.Duration{30, 60, 120, 240, 480, 960, 1920} {
			assert.LessOrEqual(t, pauses[i+1], longest*time.Second+2*time.Second, i)
			assert.GreaterOrEqual(t, pauses[i+1], longest*time.Second*4/5, i)
		}
		assert.Equal(t, []string{fmt.Sprintf("given_up %d", len(got))}, s.states())
		assert.Len(t, s.logs.FilterMessage("a message was given up: nobody hears of it").All(), 1)
		audited := s.audits.FilterMessage("notify give up").All()
		require.Len(t, audited, 1)
		assert.Equal(t, "the server answered 500", audited[0].ContextMap()["reason"])
	})
}

func TestAChannelThatHangsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		s.answer = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		defer s.join("a", "ops", "night")()
		s.write("ops")
		time.Sleep(3 * time.Second)
		s.write("ops")
		s.write("night")
		for range 10 {
			s.write(scheduler.PingChannel)
		}
		time.Sleep(5 * time.Second)
		n := map[string]int{}
		for _, line := range s.lines() {
			n[strings.Fields(line)[2]]++
		}
		assert.Equal(t, map[string]int{"ops": 1, "night": 1, "ping": maxPings}, n)
	})
}

// A sender that says nothing any more is followed by another one when its lease is over, and what it says then is too late.
func TestALeaseEnds(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		outbox, err := scheduler.OpenOutbox(s.db.Main)
		require.NoError(t, err)
		s.write("ops")
		dead := scheduler.OutboxSender{Who: "dead/1", Lease: testLease, Channels: []string{"ops"}}
		rows, err := outbox.Claim(t.Context(), &dead)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		defer s.join("b", "ops")()
		time.Sleep(testLease - 2*time.Second)
		assert.Empty(t, s.lines())
		time.Sleep(4 * time.Second)
		assert.Len(t, s.lines(), 1)
		assert.Equal(t, []string{"sent 2"}, s.states())
	})
}

// A try that takes longer than the lease stays its sender's.
func TestASlowTryIsNobodyElses(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		s.answer = func(context.Context, string) error { time.Sleep(tryTimeout - time.Second); return nil }
		s.write("ops")
		s.write(scheduler.PingChannel)
		defer s.join("a", "ops")()
		defer s.join("b", "ops")()
		time.Sleep(time.Minute)
		assert.Len(t, s.lines(), 2)
		assert.Equal(t, []string{"sent 1", "sent 1"}, s.states())
	})
}

// A channel that this replica does not know is left to the others, for a day.
func TestAChannelOfOthersIsLeftToThem(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		defer s.join("a", "ops")()
		s.write("theirs")
		s.write("gone")
		time.Sleep(2 * time.Minute)
		assert.Empty(t, s.lines())
		leave := s.join("b", "theirs")
		time.Sleep(2 * time.Second)
		leave()
		assert.Equal(t, []string{"2m0s b: theirs 1"}, s.lines())
		s.age(22 * time.Hour)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"sent 1", "pending 0"}, s.states())
		s.age(2 * time.Hour)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"sent 1", "given_up 0"}, s.states())
	})
}

// What is being sent when the replica leaves gets a second, and another one goes on with it.
func TestLeavingDoesNotWait(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		s.others = 50_000 // what cuts the try hears of the end long after the loop, which has gone by then
		s.answer = func(ctx context.Context, who string) error {
			if who == "b" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		leave := s.join("a", "ops")
		s.others = 0
		s.write("ops")
		time.Sleep(2 * time.Second)
		asked := time.Now()
		leave()
		assert.LessOrEqual(t, time.Since(asked), lastTry)
		defer s.join("b", "ops")()
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"sent 2"}, s.states())
	})
}

// Who asks to be left alone is left alone by new messages too.
func TestAChannelThatAsksForAPauseHasIt(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		s.answer = func(context.Context, string) error {
			if time.Since(s.began) < 15*time.Minute {
				return &refusedError{text: "the server answered 429", wait: 20 * time.Minute}
			}
			return nil
		}
		defer s.join("a", "ops", "night")()
		s.write("ops")
		time.Sleep(10 * time.Minute)
		s.write("ops")
		time.Sleep(15 * time.Minute)
		assert.Equal(t, []string{"0s a: ops 1", "20m0s a: ops 2"}, roughly(s.lines()))
		assert.Equal(t, []string{"sent 2", "sent 1"}, s.states())
	})
}

// roughly rounds the instants of lines to minutes.
func roughly(lines []string) []string {
	for i, line := range lines {
		at, what, _ := strings.Cut(line, " ")
		d, _ := time.ParseDuration(at)
		lines[i] = d.Round(time.Minute).String() + " " + what
	}
	return lines
}

// A channel that works again hears of all that has waited for it at once, and not an hour after the news that followed.
func TestWhatWaitedComesSoonAfterTheFirstThatArrives(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		s.answer = func(context.Context, string) error {
			if time.Since(s.began) < 35*time.Minute {
				return errors.New("no answer within 10s")
			}
			return nil
		}
		defer s.join("a", "ops", "night")()
		s.write("ops")
		s.write("night")
		time.Sleep(36 * time.Minute)
		before := len(s.lines())
		s.write("ops")
		time.Sleep(15 * time.Second)
		assert.Len(t, s.lines()[before:], 2)
		assert.Equal(t, "sent 1", s.states()[2])
		assert.True(t, strings.HasPrefix(s.states()[0], "sent "))
		assert.True(t, strings.HasPrefix(s.states()[1], "pending "), "another channel has its own turn")
	})
}

// One message for which the other side refuses all that came with it does not take them along for a day.
func TestOneBadMessageIsLeftBehind(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		for range 8 {
			s.write("ops")
		}
		outbox, err := scheduler.OpenOutbox(s.db.Main)
		require.NoError(t, err)
		sender := NewSender(Options{
			Outbox: outbox, Channels: func() map[string]jobs.Channel { return map[string]jobs.Channel{"ops": {Name: "ops"}} },
			Jobs: func() []*jobs.Job { return nil }, Check: func(context.Context) error { return nil },
			Replica: "a", Nonce: "1", Lease: testLease, Log: s.log, Audit: s.audit,
		})
		sender.send = func(_ context.Context, _ *jobs.Channel, messages []scheduler.Message) error {
			if slices.ContainsFunc(messages, func(m scheduler.Message) bool { return m.ID == "m3" }) {
				return &refusedError{text: "the server answered 400", content: true}
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); sender.Run(ctx) }()
		time.Sleep(40 * time.Minute) // five tries and their pauses are 16 min
		cancel()
		<-over
		for i, state := range s.states() {
			assert.Equal(t, i != 2, strings.HasPrefix(state, "sent "), "m%d is %s", i+1, state)
		}
	})
}

// That a run has begun is not told after its end: it is cut before that may go out, and not begun when it comes too late.
func TestABeginningDoesNotComeAfterTheEnd(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		job := &jobs.Job{Name: "j", Ping: "https://ping.example/x"}
		p := NewPinger(func(string) *jobs.Job { return job }, s.log)
		var mu sync.Mutex
		told := map[int64]string{}
		p.send = func(ctx context.Context, _ *jobs.Job, b began) error {
			started := time.Since(s.began)
			err := errors.New("no answer")
			select {
			case <-time.After(tryTimeout):
			case <-ctx.Done():
				err = ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			told[b.run] += fmt.Sprintf("%s to %s;", started, time.Since(s.began))
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); p.Run(ctx) }()
		runs := make([]*jobs.Run, pingWorkers+1)
		for i := range runs {
			runs[i] = &jobs.Run{ID: int64(i + 1), Job: "j", Notify: true}
			p.Claimed(runs[i])
		}
		time.Sleep(2 * time.Second)
		for _, i := range []int{0, pingWorkers} { // one that is being told, and one that waits
			p.Ended(&scheduler.Ending{Run: runs[i], Written: true})
		}
		p.Ended(&scheduler.Ending{Run: &jobs.Run{ID: 99}}) // one that never ran here
		time.Sleep(time.Minute)
		cancel()
		<-over
		assert.Equal(t, "0s to 2.5s;", told[1])
		assert.Less(t, startGrace, scheduler.PingWait)
		assert.Equal(t, "0s to 10s;11s to 21s;", told[2])
		assert.NotContains(t, told, int64(pingWorkers+1))
		assert.Empty(t, p.going)
	})
}

func TestPausesGrowToAnHour(t *testing.T) {
	t.Parallel()
	for n, longest := range map[int]time.Duration{0: 30 * time.Second, 1: 30 * time.Second, 2: time.Minute, 7: 32 * time.Minute, 8: time.Hour, 1000: time.Hour} {
		for range 100 {
			d := pause(n)
			assert.LessOrEqual(t, d, longest)
			assert.Greater(t, d, longest*4/5-1)
		}
	}
}

// A run does not wait for its ping, nor for those of other runs; what is too much is dropped, with a line.
func TestABeginningIsNeverWaitedFor(t *testing.T) {
	t.Parallel()
	inABubble(t, func(t *testing.T, s *stage) {
		t.Helper()
		job := &jobs.Job{Name: "j", Ping: "https://ping.example/" + token}
		p := NewPinger(func(string) *jobs.Job { return job }, s.log)
		var mu sync.Mutex
		tries := 0
		p.send = func(ctx context.Context, _ *jobs.Job, _ began) error {
			mu.Lock()
			tries++
			mu.Unlock()
			select {
			case <-time.After(tryTimeout):
				return errors.New("no answer within 10s")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); p.Run(ctx) }()
		asked := time.Now()
		for i := range 200 {
			p.Claimed(&jobs.Run{ID: int64(i), Job: "j", Notify: true})
			p.Claimed(&jobs.Run{ID: int64(i), Job: "other"})
		}
		assert.Zero(t, time.Since(asked))
		dropped := s.logs.FilterMessage("the ping that a run begins was dropped: too many wait").Len()
		assert.GreaterOrEqual(t, dropped, 200-pingQueue-pingWorkers)
		time.Sleep(time.Hour)
		mu.Lock()
		assert.Equal(t, 2*(200-dropped), tries, "twice, and no third time")
		mu.Unlock()
		assert.Equal(t, 200-dropped, s.logs.FilterMessage("the ping that a run begins could not be sent").Len())
		for _, line := range s.logs.All() {
			assert.NotContains(t, fmt.Sprint(line.Message, line.ContextMap()), token)
		}
		cancel()
		<-over
	})
}
