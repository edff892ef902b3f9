package scheduler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

// millis is an instant as a statement takes it.
func (b *bench) millis(t time.Time) any { return dbtime.Arg(b.d, t) }

func (b *bench) outbox() *Outbox {
	o, err := OpenOutbox(b.db)
	require.NoError(b.t, err)
	return o
}

// write puts messages to a channel into the outbox.
func (b *bench) write(channel string, n int) {
	var rows []outgoing
	for range n {
		rows = append(rows, toChannels([]string{channel}, NewMessageID(), Message{Event: jobs.EventFailure, Job: "j", RunID: 7, Text: "t"})...)
	}
	tx, err := b.db.BeginTx(b.ctx(), nil)
	require.NoError(b.t, err)
	require.NoError(b.t, b.addMessages(b.ctx(), tx, rows))
	require.NoError(b.t, tx.Commit())
}

func sender(who string, channels ...string) *OutboxSender {
	return &OutboxSender{Who: who, Replica: who, Lease: LongestOutboxLease, Channels: channels, Pings: []string{"j"}, MaxPings: 2}
}

// taken counts what a claim takes, by channel.
func (b *bench) taken(by *OutboxSender) map[string]int {
	rows, err := b.outbox().Claim(b.ctx(), by)
	require.NoError(b.t, err)
	n := map[string]int{}
	for i := range rows {
		n[rows[i].Channel]++
	}
	return n
}

// rows are those of the outbox with these ids, or all.
func (b *bench) rows(ids ...int64) (rows []OutboxRow) {
	if ids == nil {
		ids = b.allOutbox()
	}
	for _, id := range ids {
		r := OutboxRow{ID: id}
		require.NoError(b.t, b.db.NewRaw("SELECT channel, job FROM outbox WHERE id = ?", id).Scan(b.ctx(), &r.Channel, &r.Job))
		rows = append(rows, r)
	}
	return rows
}

func (b *bench) allOutbox() (ids []int64) {
	require.NoError(b.t, b.db.NewRaw("SELECT id FROM outbox ORDER BY id").Scan(b.ctx(), &ids))
	return ids
}

// later moves everything in the outbox into the past.
func (b *bench) later(by time.Duration) {
	for _, column := range []string{"created_at", "due_at", "claimed_until"} {
		query := "UPDATE outbox SET " + column + " = " + column + " - ? * interval '1 millisecond'"
		if b.q == &sqliteQueries {
			query = "UPDATE outbox SET " + column + " = " + column + " - ?"
		}
		_, err := b.db.NewRaw(query, by.Milliseconds()).Exec(b.ctx())
		require.NoError(b.t, err)
	}
}

// outboxTime is the latest of such a column among the messages of a channel.
func (b *bench) outboxTime(column, channel string) time.Time {
	var rows []struct {
		Latest dbtime.Time `bun:"latest"`
	}
	require.NoError(b.t, b.db.NewRaw("SELECT max("+column+") AS latest FROM outbox WHERE channel = ?", channel).Scan(b.ctx(), &rows))
	require.Len(b.t, rows, 1)
	return rows[0].Latest.Time
}

func (b *bench) states() (states []string) {
	require.NoError(b.t, b.db.NewRaw("SELECT state || ' ' || attempts || ' ' || last_error FROM outbox ORDER BY id").Scan(b.ctx(), &states))
	return states
}

func TestAChannelIsOneSendersAtATime(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.write("ops", 3)
		b.write("theirs", 1)
		assert.Equal(b.t, map[string]int{"ops": 3}, b.taken(sender("a", "ops")))
		b.write("ops", 2)
		assert.Empty(b.t, b.taken(sender("b", "ops")), "somebody is about to send to it")
		assert.Equal(b.t, map[string]int{"theirs": 1}, b.taken(sender("b", "ops", "theirs")))

		before := b.clock()
		require.NoError(b.t, b.outbox().Sent(b.ctx(), b.rows(b.allOutbox()[:3]...)))
		assert.WithinRange(b.t, b.outboxTime("claimed_until", "ops"), before.Add(OutboxQuiet), b.clock().Add(OutboxQuiet))
		b.exec("UPDATE outbox SET claimed_until = ? WHERE state = 'sent'", b.millis(before.Add(time.Hour))) // for a slow machine
		assert.Empty(b.t, b.taken(sender("b", "ops")), "somebody has just sent to it")
		b.later(time.Hour)
		assert.Equal(b.t, map[string]int{"ops": 2}, b.taken(sender("b", "ops")), "what came meanwhile goes as one")
	})
}

func TestASenderThatDiesLosesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		const lease, room = time.Hour, 10 * time.Minute // for a slow machine
		by := func(who string) *OutboxSender {
			s := sender(who, "ops")
			s.Lease = lease
			return s
		}
		b.write("ops", 2)
		require.Len(b.t, b.taken(by("a")), 1)
		b.later(lease - room)
		assert.Empty(b.t, b.taken(by("b")), "it may still be sending")
		require.NoError(b.t, b.outbox().Renew(b.ctx(), by("a"), b.allOutbox()))
		require.NoError(b.t, b.outbox().Renew(b.ctx(), by("b"), b.allOutbox()), "it is not b's")
		b.later(lease - room)
		assert.Empty(b.t, b.taken(by("b")), "it is still sending")
		b.later(room)
		assert.Equal(b.t, map[string]int{"ops": 2}, b.taken(by("b")))
		require.NoError(b.t, b.outbox().Renew(b.ctx(), by("a"), b.allOutbox()))
		b.later(lease)
		assert.Equal(b.t, map[string]int{"ops": 2}, b.taken(by("b")), "a renewal that comes too late keeps nothing")
		given, err := b.outbox().Failed(b.ctx(), by("a"), &OutboxFailure{Parcel: b.rows(), Again: time.Hour, Why: "late"})
		require.NoError(b.t, err)
		assert.Empty(b.t, given)
		assert.Equal(b.t, []string{"pending 3 ", "pending 3 "}, b.states(), "it is not the first one's any more")
	})
}

func TestALeaseIsThatOfALockWithinBounds(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]time.Duration{
		time.Second: 5 * time.Second, 12 * time.Second: 12 * time.Second, 30 * time.Second: 30 * time.Second, time.Hour: 30 * time.Second,
	} {
		assert.Equal(t, want, OutboxLease(ttl), ttl)
	}
}

func TestAFailedTryIsRepeatedAndGivenUpAfterADay(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		by := sender("a", "ops")
		failure := &OutboxFailure{Again: time.Minute, Why: "the server answered 500"}
		b.write("ops", 1)
		failure.Parcel = b.rows()
		for i, wait := range []time.Duration{2 * time.Minute, 23 * time.Hour, 2 * time.Hour} {
			require.Len(b.t, b.taken(by), 1, i)
			given, err := b.outbox().Failed(b.ctx(), by, failure)
			require.NoError(b.t, err)
			assert.Equal(b.t, []string{"pending " + strconv.Itoa(i+1) + " the server answered 500"}, b.states())
			assert.Empty(b.t, given)
			b.later(30 * time.Second)
			assert.Empty(b.t, b.taken(by), "not yet")
			b.later(wait)
		}
		require.Len(b.t, b.taken(by), 1)
		given, err := b.outbox().Failed(b.ctx(), by, failure)
		require.NoError(b.t, err)
		require.Len(b.t, given, 1)
		assert.Equal(b.t, []string{"given_up 4 the server answered 500"}, b.states())
		b.later(24 * time.Hour)
		assert.Empty(b.t, b.taken(by))

		var detail []string
		require.NoError(b.t, b.db.NewRaw("SELECT detail FROM audit_log WHERE action = 'notify.give_up' AND job = 'j' AND run_id = 7").Scan(b.ctx(), &detail))
		require.Len(b.t, detail, 1)
		var facts map[string]any
		require.NoError(b.t, json.Unmarshal([]byte(detail[0]), &facts))
		assert.Equal(b.t, map[string]any{"channel": "ops", "event": "failure", "message": given[0].Message.ID, "attempts": 4.0}, facts)
	})
}

func TestWhatNobodyCanSendIsGivenUpAfterADay(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		b.write("gone", 1)
		b.write("ops", 1)
		b.write(PingChannel, 1)
		by := sender("a", "ops")
		b.later(23 * time.Hour)
		given, err := b.outbox().GiveUp(b.ctx(), by)
		require.NoError(b.t, err)
		assert.Empty(b.t, given)
		b.later(2 * time.Hour)
		given, err = b.outbox().GiveUp(b.ctx(), by)
		require.NoError(b.t, err)
		require.Len(b.t, given, 1)
		assert.Equal(b.t, "gone", given[0].Channel)
		by.Pings = nil
		given, err = b.outbox().GiveUp(b.ctx(), by)
		require.NoError(b.t, err)
		require.Len(b.t, given, 1, "nobody knows the job's URL any more")
		assert.Equal(b.t, PingChannel, given[0].Channel)
		assert.Equal(b.t, map[string]int{"ops": 1}, b.taken(by), "what can be sent is, however old")
	})
}

// writePings puts a ping of each job into the outbox.
func (b *bench) writePings(names ...string) {
	var rows []outgoing
	for _, name := range names {
		rows = append(rows, toChannels([]string{PingChannel}, NewMessageID(), Message{Event: PingSuccess, Job: name, RunID: 7, Text: "t"})...)
	}
	tx, err := b.db.BeginTx(b.ctx(), nil)
	require.NoError(b.t, err)
	require.NoError(b.t, b.addMessages(b.ctx(), tx, rows))
	require.NoError(b.t, tx.Commit())
}

func TestPingsOfJobsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		by := sender("a")
		by.Pings = []string{"j", "k", "l"}
		b.writePings("j", "k", "l", "unknown")
		assert.Equal(b.t, map[string]int{PingChannel: 2}, b.taken(by))
		assert.Equal(b.t, map[string]int{PingChannel: 1}, b.taken(by))
		assert.Empty(b.t, b.taken(by), "it does not know the URL of the job")
	})
}

// The pings of one job go in their order, whoever sends them.
func TestPingsOfAJobGoOneAfterTheOther(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		for range 3 {
			b.writePings("j")
		}
		ids := b.allOutbox()
		for i, id := range ids {
			rows, err := b.outbox().Claim(b.ctx(), sender("a"))
			require.NoError(b.t, err)
			require.Len(b.t, rows, 1)
			assert.Equal(b.t, id, rows[0].ID)
			assert.Empty(b.t, b.taken(sender("b")), "the one before is being sent")
			require.NoError(b.t, b.outbox().Sent(b.ctx(), rows))
			assert.Len(b.t, b.allOutbox(), len(ids), i)
		}
	})
}

// What could not be told is of no use any more once a later run of the job has been told of, or tried: a success that comes
// after the failure that followed it would call the job well.
func TestALaterPingTakesTheEarliersPlace(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{true, false} {
		each(t, func(b *bench) {
			b.writePings("j", "other")
			by := sender("a")
			by.Pings = []string{"j", "other"}
			first, err := b.outbox().Claim(b.ctx(), by)
			require.NoError(b.t, err)
			require.Len(b.t, first, 2)
			slices.SortFunc(first, func(x, y OutboxRow) int { return cmp.Compare(x.Job, y.Job) }) // the numbers are in any order
			for i := range first {
				_, err = b.outbox().Failed(b.ctx(), by, &OutboxFailure{Parcel: first[i : i+1], Again: time.Minute, Why: "away"})
				require.NoError(b.t, err)
			}
			b.writePings("j")
			b.later(2 * time.Minute)
			by.Pings = []string{"j"}
			next, err := b.outbox().Claim(b.ctx(), by)
			require.NoError(b.t, err)
			require.Len(b.t, next, 1, "both are due")
			assert.Greater(b.t, next[0].ID, first[0].ID)
			if arrives {
				require.NoError(b.t, b.outbox().Sent(b.ctx(), next))
			} else {
				_, err = b.outbox().Failed(b.ctx(), by, &OutboxFailure{Parcel: next, Again: time.Minute, Why: "away"})
				require.NoError(b.t, err)
			}
			left := b.allOutbox()
			assert.NotContains(b.t, left, first[0].ID)
			assert.ElementsMatch(b.t, []int64{first[1].ID, next[0].ID}, left)
		})
	}
}

func TestManySendersTakeEachMessageOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		for i := range 20 {
			b.write(fmt.Sprintf("c%02d", i), 5)
		}
		names := make([]string, 20)
		for i := range names {
			names[i] = fmt.Sprintf("c%02d", i)
		}
		var mu sync.Mutex
		seen := map[int64]int{}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 5 {
					rows, err := b.outbox().Claim(b.ctx(), sender(strconv.Itoa(i), names[i*3:]...))
					if err != nil {
						b.t.Errorf("claiming: %v", err)
						return
					}
					mu.Lock()
					for _, r := range rows {
						seen[r.ID]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for _, r := range b.taken(sender("last", names...)) {
			assert.Equal(b.t, 5, r, "a channel goes as a whole")
		}
		for id, n := range seen {
			assert.Equal(b.t, 1, n, id)
		}
	})
}
