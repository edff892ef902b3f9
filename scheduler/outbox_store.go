package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// The times of the outbox, by the database's clock.
const (
	// ShortestOutboxLease and LongestOutboxLease bound OutboxLease.
	ShortestOutboxLease = 5 * time.Second
	LongestOutboxLease  = 30 * time.Second
	// OutboxQuiet is how long a channel is left alone after a try: what is to be said meanwhile becomes one message.
	OutboxQuiet = 5 * time.Second
	// OutboxKeepTrying is the age at which a message is given up.
	OutboxKeepTrying = 24 * time.Hour
)

// OutboxLease is how long a message is its sender's unless that renews it: as long as a lock is its holder's, within bounds.
// After it another one sends. A lock TTL of a second is no reason to say something twice, and one of an hour none to wait.
func OutboxLease(lockTTL time.Duration) time.Duration {
	return min(max(lockTTL, ShortestOutboxLease), LongestOutboxLease)
}

// outboxUnknown is why a message is given up that nobody has tried to send.
const outboxUnknown = "no replica has known the channel for a day"

// outboxBatch is how many messages of all channels one claim takes at most.
const outboxBatch = 500

// Outbox is where messages wait until they are sent. Any number of processes may send from one.
type Outbox struct {
	s *store
	q *outboxQueries
}

// outboxQueries is the SQL of one database; the texts are in postgres_outbox.go and sqlite_outbox.go.
type outboxQueries struct {
	tryLock                            string // empty where a transaction is the only writer
	claim, renew, sent, failed, giveUp string
	hurry                              string // what waits for a channel that works again
	overtaken                          string // pings after which a later one of the job was tried
}

// OpenOutbox returns the outbox of a migrated database.
func OpenOutbox(db *DB) (*Outbox, error) {
	s, err := openStore(db)
	if err != nil {
		return nil, err
	}
	if s.d == dialect.SQLite {
		return &Outbox{s, &sqliteOutbox}, nil
	}
	return &Outbox{s, &postgresOutbox}, nil
}

// OutboxRow is a message that waits, or was given up.
type OutboxRow struct {
	ID       int64
	Channel  string
	Job      string
	Attempts int // how often it was tried, this time included
	GivenUp  bool
	Message  Message
}

// OutboxSender is who sends, and what it can send.
type OutboxSender struct {
	Who      string        // unique to the process
	Replica  string        // its name, for the audit
	Lease    time.Duration // OutboxLease
	Channels []string      // that it knows
	Pings    []string      // the jobs whose ping URL it knows
	MaxPings int           // how many pings it takes at most
}

// Claim takes messages that are due: of each channel all that wait, unless somebody is about to send to it or has just done so.
func (o *Outbox) Claim(ctx context.Context, by *OutboxSender) (rows []OutboxRow, err error) {
	err = o.s.tx(ctx, func(tx bun.Tx) error {
		rows = nil
		if alone, err := tryLock(ctx, tx, o.q.tryLock); err != nil || !alone {
			return err
		}
		rows, err = scanOutbox(ctx, tx.NewRaw(o.q.claim, by.Who, by.Lease.Milliseconds(), encode(orEmpty(by.Channels)), outboxBatch,
			PingChannel, encode(orEmpty(by.Pings)), by.MaxPings))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("taking messages to send: %w", err)
	}
	return rows, nil
}

// Renew says that messages are still being sent. One that is another sender's by now stays that one's.
func (o *Outbox) Renew(ctx context.Context, by *OutboxSender, ids []int64) error {
	if _, err := o.s.db.NewRaw(o.q.renew, by.Lease.Milliseconds(), encode(ids), by.Who).Exec(ctx); err != nil {
		return fmt.Errorf("keeping messages that are being sent: %w", err)
	}
	return nil
}

// Sent says that messages of one channel, or one ping, have arrived. What else waits for it because it could not be sent is
// tried next: a channel that works again has not to wait for its turn, and hears of a failure before it forgets the recovery.
func (o *Outbox) Sent(ctx context.Context, parcel []OutboxRow) error {
	first := &parcel[0]
	err := o.s.tx(ctx, func(tx bun.Tx) error {
		if _, err := tx.NewRaw(o.q.sent, OutboxQuiet.Milliseconds(), encode(outboxIDs(parcel))).Exec(ctx); err != nil {
			return err //nolint:wrapcheck // below
		}
		if first.Channel == PingChannel {
			return o.overtake(ctx, tx, first)
		}
		_, err := tx.NewRaw(o.q.hurry, first.Channel).Exec(ctx)
		return err //nolint:wrapcheck // below
	})
	if err != nil {
		return fmt.Errorf("marking messages as sent: %w", err)
	}
	return nil
}

// overtake ends the wait of pings after which a later one of the same job was tried. What they say is not so any more: a
// success that arrives after the failure that followed it would call the job well.
func (o *Outbox) overtake(ctx context.Context, tx bun.Tx, by *OutboxRow) error {
	_, err := tx.NewRaw(o.q.overtaken, PingChannel, by.Job, by.ID).Exec(ctx)
	return err //nolint:wrapcheck // the callers say what for
}

func outboxIDs(parcel []OutboxRow) []int64 {
	ids := make([]int64, len(parcel))
	for i := range parcel {
		ids[i] = parcel[i].ID
	}
	return ids
}

// OutboxFailure is a try that has failed.
type OutboxFailure struct {
	Parcel []OutboxRow   // of one channel, or one ping
	Again  time.Duration // after which to try again
	Quiet  time.Duration // how long the channel is left alone, by new messages too; at least OutboxQuiet
	Why    string        // without a secret
}

// Failed says that messages have not arrived, and returns those that are given up now: they are too old.
func (o *Outbox) Failed(ctx context.Context, by *OutboxSender, f *OutboxFailure) (given []OutboxRow, err error) {
	err = o.s.tx(ctx, func(tx bun.Tx) error {
		given, err = scanOutbox(ctx, tx.NewRaw(o.q.failed, f.Again.Milliseconds(), max(f.Quiet, OutboxQuiet).Milliseconds(), f.Why,
			OutboxKeepTrying.Milliseconds(), encode(outboxIDs(f.Parcel)), by.Who))
		if err != nil {
			return err
		}
		if f.Parcel[0].Channel == PingChannel {
			if err := o.overtake(ctx, tx, &f.Parcel[0]); err != nil {
				return err
			}
		}
		given = slices.DeleteFunc(given, func(r OutboxRow) bool { return !r.GivenUp })
		return o.auditGivenUp(ctx, tx, given, by.Replica, f.Why)
	})
	if err != nil {
		return nil, fmt.Errorf("marking messages as not sent: %w", err)
	}
	return given, nil
}

// GiveUp ends the wait of messages that nobody has taken for a day because no replica knows where to send them.
func (o *Outbox) GiveUp(ctx context.Context, by *OutboxSender) (given []OutboxRow, err error) {
	err = o.s.tx(ctx, func(tx bun.Tx) error {
		given, err = scanOutbox(ctx, tx.NewRaw(o.q.giveUp, outboxUnknown, OutboxKeepTrying.Milliseconds(),
			encode(orEmpty(by.Channels)), PingChannel, encode(orEmpty(by.Pings))))
		if err != nil {
			return err
		}
		return o.auditGivenUp(ctx, tx, given, by.Replica, outboxUnknown)
	})
	if err != nil {
		return nil, fmt.Errorf("giving up messages: %w", err)
	}
	return given, nil
}

func (o *Outbox) auditGivenUp(ctx context.Context, tx bun.Tx, given []OutboxRow, replica, why string) error {
	rows := make([]auditRow, len(given))
	for i := range given {
		g := &given[i]
		rows[i] = auditRow{
			Action: "notify.give_up", Outcome: "failure", Job: g.Job, RunID: g.Message.RunID, Replica: replica, Reason: why,
			Detail: detail(map[string]any{"channel": g.Channel, "event": g.Message.Event, "message": g.Message.ID, "attempts": g.Attempts}),
		}
	}
	return o.s.audit(ctx, tx, rows)
}

type outboxRow struct {
	ID       int64   `bun:"id"`
	Channel  string  `bun:"channel"`
	Job      string  `bun:"job"`
	Attempts int     `bun:"attempts"`
	Payload  rawText `bun:"payload"`
	State    string  `bun:"state"`
}

func scanOutbox(ctx context.Context, q *bun.RawQuery) ([]OutboxRow, error) {
	var found []outboxRow
	if err := q.Scan(ctx, &found); err != nil {
		return nil, err //nolint:wrapcheck // the callers say what for
	}
	var rows []OutboxRow
	for i := range found {
		f := &found[i]
		row := OutboxRow{ID: f.ID, Channel: f.Channel, Job: f.Job, Attempts: f.Attempts, GivenUp: f.State == "given_up"}
		if err := json.Unmarshal(f.Payload, &row.Message); err != nil {
			return nil, fmt.Errorf("reading message %d: %w", f.ID, err)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b OutboxRow) int { return cmp.Compare(a.ID, b.ID) }) // RETURNING has no order
	return rows, nil
}

// orEmpty: a nil slice would be JSON's null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
