package scheduler

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

// endedRow is a due run that will not start, with the facts that say why.
type endedRow struct {
	ID           int64       `bun:"id"`
	Job          string      `bun:"job"`
	Occurrence   string      `bun:"occurrence"`
	StartBy      dbtime.Time `bun:"start_by"`
	OnlyOn       rawText     `bun:"only_on"`
	Earlier      *int64      `bun:"earlier"` // the first unfinished earlier run of the same job
	HeldSince    dbtime.Time `bun:"held_since"`
	HeldUntil    dbtime.Time `bun:"held_until"`
	HeldMetadata rawText     `bun:"held_metadata"`
	DoneBy       *int64      `bun:"done_by"`  // the run that succeeded with the resource of this one, which is once_per it
	FullTag      *string     `bun:"full_tag"` // a tag of the run whose limit is reached
	Limits       rawText     `bun:"limits"`
	Expired      bool        `bun:"expired"` // start_by has passed

	pause     *Pause         // that covered start_by
	unmatched map[string]any // only_on, and the labels of the replicas that are there, none of which match
}

// rawText scans a JSON column of either driver.
type rawText []byte

func (t *rawText) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t = nil
	case string:
		*t = rawText(v)
	case []byte:
		*t = append(rawText(nil), v...)
	default:
		return fmt.Errorf("scheduler: scanning a JSON column from a %T", src)
	}
	return nil
}

// settle finishes the due runs that will never start: skipped by overlap or once_per, replaced by a later one, or missed
// because start_deadline passed. asked says that a running run has to give way to a due one. Any replica does it, whether
// it knows the job or not.
func (s *store) settle(ctx context.Context) (ended []jobs.Run, asked bool, err error) {
	err = s.tx(ctx, func(tx bun.Tx) error {
		replaced, running, err := s.replace(ctx, tx)
		if err != nil {
			return err
		}
		asked = running
		var rows []endedRow
		if err := tx.NewRaw(s.q.ended).Scan(ctx, &rows); err != nil {
			return fmt.Errorf("selecting runs that cannot start: %w", err)
		}
		if err := s.whyExpired(ctx, tx, rows); err != nil {
			return err
		}
		endings := make([]ending, len(rows))
		for i := range rows {
			endings[i] = rows[i].ending()
		}
		ended, err = s.end(ctx, tx, endings)
		ended = append(replaced, ended...)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("settling: %w", err)
	}
	return ended, asked, nil
}

func (r *endedRow) ending() ending {
	e := ending{ID: r.ID, FromState: jobs.StatePending, Outcome: jobs.OutcomeSkipped, Reason: jobs.ReasonOverlap}
	if r.Expired {
		e.Outcome = jobs.OutcomeMissed
	}
	facts := map[string]any{}
	switch {
	case r.DoneBy != nil:
		e.Outcome, e.Reason = jobs.OutcomeSkipped, jobs.ReasonOncePer
		facts["succeeded_run"] = *r.DoneBy
	case r.pause != nil:
		e.Reason = jobs.ReasonPaused
		facts["pause"] = r.pause.fact()
	case r.unmatched != nil:
		e.Reason, facts = jobs.ReasonNoMatchingReplica, r.unmatched
	case r.Earlier != nil:
		facts["unfinished_run"] = *r.Earlier
	case !r.HeldUntil.IsZero():
		e.Reason = jobs.ReasonLockHeld
		// The holder's owner token stays out of it: whoever knows it may release the lock.
		facts["holder"] = map[string]any{
			"acquired_at": r.HeldSince.Time, "expires_at": r.HeldUntil.Time, "metadata": json.RawMessage(r.HeldMetadata),
		}
	case r.FullTag != nil:
		e.Reason = jobs.ReasonLimit
		facts["tag"], facts["limits"] = *r.FullTag, json.RawMessage(r.Limits)
	default:
		e.Reason = jobs.ReasonNoCapacity
	}
	e.Detail = detail(facts)
	return e
}
