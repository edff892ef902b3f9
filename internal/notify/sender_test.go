package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

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
