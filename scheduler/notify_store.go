package scheduler

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/failpoint"
	"github.com/cronlatch/cronlatch/jobs"
)

// notifyBatch is how many runs one transaction looks at.
const notifyBatch = 100

// notifyQueries is the SQL of one database; the texts are in postgres_notify.go and sqlite_notify.go.
type notifyQueries struct {
	tryLock                           string // empty where a transaction is the only writer
	listened, unmark                  string
	late                              string
	addMessages                       string
	troubles, addTroubles, endTrouble string
}

func (s *store) notifyQueries() *notifyQueries {
	if s.d == dialect.SQLite {
		return &sqliteNotify
	}
	return &postgresNotify
}

// notified is what one look at ended runs has found.
type notified struct {
	more  bool       // there may be further ended runs
	stale []jobs.Run // those of which nobody knew for a day who wants to hear of them
}

// notify looks what is to be said of runs that have ended: it inserts the messages and clears the mark (notify) that somebody
// has to look, in one transaction, so that there is one message whoever is killed when. One replica looks at a time: what is
// a recovery depends on what was told before. Runs of jobs that this replica does not know are left to one that does, for a
// day; then their mark is cleared.
func (s *store) notify(ctx context.Context, known map[string]*jobs.Job) (seen notified, err error) {
	failpoint.Hit("notifying")
	err = s.tx(ctx, func(tx bun.Tx) error {
		seen, err = s.notifyIn(ctx, tx, known)
		return err
	})
	if err != nil {
		return notified{}, fmt.Errorf("looking what is to be said: %w", err)
	}
	return seen, nil
}

func (s *store) notifyIn(ctx context.Context, tx bun.Tx, known map[string]*jobs.Job) (seen notified, err error) {
	q := s.notifyQueries()
	if alone, err := tryLock(ctx, tx, q.tryLock); err != nil || !alone {
		return seen, err // the other one sees what we would see, or the next look does
	}
	ended, err := jobs.ScanRuns(ctx, tx.NewRaw(q.listened, encode(listenedTo(known)), notifyBatch))
	if err != nil {
		return seen, fmt.Errorf("selecting runs that are listened to: %w", err)
	}
	if len(ended) == 0 {
		return seen, nil
	}
	seen.more = len(ended) == notifyBatch
	ids := make([]int64, len(ended))
	for i := range ended {
		ids[i] = ended[i].ID
		if j := known[ended[i].Job]; j == nil || !j.Listened() {
			seen.stale = append(seen.stale, ended[i])
		}
	}
	if err := s.tell(ctx, tx, known, ids, ended); err != nil {
		return seen, err
	}
	if _, err := tx.NewRaw(q.unmark, encode(ids)).Exec(ctx); err != nil {
		return seen, fmt.Errorf("unmarking runs that were listened to: %w", err)
	}
	return seen, nil
}

// tryLock is false when another transaction has the lock.
func tryLock(ctx context.Context, tx bun.Tx, query string) (alone bool, err error) {
	if query == "" {
		return true, nil
	}
	if err := tx.NewRaw(query).Scan(ctx, &alone); err != nil {
		return false, fmt.Errorf("asking whether another replica does the same: %w", err)
	}
	return alone, nil
}

// tell decides run by run, in the order of their ends, and writes what was decided.
func (s *store) tell(ctx context.Context, tx bun.Tx, known map[string]*jobs.Job, ids []int64, ended []jobs.Run) error {
	last, err := s.lastAttempts(ctx, tx, ids, append([]jobs.Run{}, ended...))
	if err != nil {
		return err
	}
	decides := map[int64]bool{}
	for i := range last {
		decides[last[i].ID] = true
	}
	before, err := s.troubles(ctx, tx, ended)
	if err != nil {
		return err
	}
	now := map[string]*trouble{}
	maps.Copy(now, before)
	var rows []outgoing
	for i := range ended {
		r := &ended[i]
		j := known[r.Job]
		if j == nil || !j.Listened() {
			continue
		}
		h := happened(j, r, !decides[r.ID], now[r.Job])
		rows = append(rows, messagesOf(j, r, h, now[r.Job])...)
		now[r.Job] = h.now
	}
	if err := s.addMessages(ctx, tx, rows); err != nil {
		return err
	}
	return s.keepTroubles(ctx, tx, before, now)
}

// addMessages puts messages into the outbox, each once.
func (s *store) addMessages(ctx context.Context, tx bun.Tx, rows []outgoing) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := tx.NewRaw(s.notifyQueries().addMessages, encode(rows)).Exec(ctx); err != nil {
		return fmt.Errorf("writing messages: %w", err)
	}
	return nil
}

// NewMessageID is one that no other message of any fleet has.
func NewMessageID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return hex.EncodeToString(b)
}

type troubleRow struct {
	Job   string      `bun:"job"   json:"job"`
	Event jobs.Event  `bun:"event" json:"event"`
	RunID *int64      `bun:"run_id" json:"run_id"`
	Since dbtime.Time `bun:"since" json:"-"`

	EncodedSince any `bun:"-" json:"since"`
}

func (s *store) troubles(ctx context.Context, tx bun.Tx, ended []jobs.Run) (map[string]*trouble, error) {
	names := make([]string, len(ended))
	for i := range ended {
		names[i] = ended[i].Job
	}
	var rows []troubleRow
	if err := tx.NewRaw(s.notifyQueries().troubles, encode(names)).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("reading which jobs are in trouble: %w", err)
	}
	m := map[string]*trouble{}
	for _, r := range rows {
		m[r.Job] = &trouble{event: r.Event, since: r.Since.Time}
		if r.RunID != nil {
			m[r.Job].run = *r.RunID
		}
	}
	return m, nil
}

// keepTroubles writes what has changed.
func (s *store) keepTroubles(ctx context.Context, tx bun.Tx, before, now map[string]*trouble) error {
	var rows []troubleRow
	var over []string
	for job, t := range now {
		switch t {
		case before[job]:
		case nil:
			over = append(over, job)
		default:
			row := troubleRow{Job: job, Event: t.event, EncodedSince: dbtime.Arg(s.d, t.since)}
			if t.run != 0 {
				row.RunID = &t.run
			}
			rows = append(rows, row)
		}
	}
	if err := s.addTroubles(ctx, tx, rows); err != nil || over == nil {
		return err
	}
	if _, err := tx.NewRaw(s.notifyQueries().endTrouble, encode(over)).Exec(ctx); err != nil {
		return fmt.Errorf("ending the trouble of jobs: %w", err)
	}
	return nil
}

func (s *store) addTroubles(ctx context.Context, tx bun.Tx, rows []troubleRow) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := tx.NewRaw(s.notifyQueries().addTroubles, encode(rows)).Exec(ctx); err != nil {
		return fmt.Errorf("keeping the trouble of jobs: %w", err)
	}
	return nil
}

// late says of runs that are late and not finished yet that they are; those that have finished are said by notify. It returns
// those of which a channel had not heard.
func (s *store) late(ctx context.Context, asked []lateJob, known map[string]*jobs.Job) (late []jobs.Run, err error) {
	q := s.notifyQueries()
	err = s.tx(ctx, func(tx bun.Tx) error {
		late = nil
		if alone, err := tryLock(ctx, tx, q.tryLock); err != nil || !alone {
			return err
		}
		if late, err = jobs.ScanRuns(ctx, tx.NewRaw(q.late, encode(asked), notifyBatch)); err != nil {
			return fmt.Errorf("selecting late runs: %w", err)
		}
		var rows []outgoing
		for i := range late {
			j := known[late[i].Job]
			rows = append(rows, messagesOf(j, &late[i], happening{events: []jobs.Event{jobs.EventLate}}, nil)...)
		}
		return s.addMessages(ctx, tx, rows)
	})
	if err != nil {
		return nil, fmt.Errorf("looking for late runs: %w", err)
	}
	return late, nil
}

// sayOverdue puts what is to be said of overdue jobs into the outbox, in the transaction that reports them.
func (s *store) sayOverdue(ctx context.Context, tx bun.Tx, ages []maxAge, reported []overdueJob, who identity) error {
	channels, listened := map[string][]string{}, map[string]bool{}
	for i := range ages {
		channels[ages[i].Job], listened[ages[i].Job] = ages[i].channels, ages[i].listened
	}
	var rows []outgoing
	var troubles []troubleRow
	for i := range reported {
		o := &reported[i]
		about := fmt.Sprintf("%q:%d", o.Job, o.Since.UnixMilli())
		rows = append(rows, toChannels(channels[o.Job], about, overdueMessage(o, who.Replica))...)
		if listened[o.Job] {
			troubles = append(troubles, troubleRow{Job: o.Job, Event: jobs.EventOverdue, EncodedSince: dbtime.Arg(s.d, o.Since.Time)})
		}
	}
	if err := s.addMessages(ctx, tx, rows); err != nil {
		return err
	}
	return s.addTroubles(ctx, tx, troubles)
}
