package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/jobs"
)

// overdueEvery is how often a replica looks for jobs that have not succeeded for longer than their max_age.
const overdueEvery = time.Minute

// overdueJob is a job whose last success is too old.
type overdueJob struct {
	Job string `bun:"job"`
	// Since is the last success, or what was first planned of a job that never had one.
	Since     dbtime.Time `bun:"since"`
	Succeeded bool        `bun:"succeeded"` // Since is a success
}

type maxAge struct {
	Job    string `json:"job"`
	MaxAge int64  `json:"max_age"` // milliseconds

	channels []string // that want to hear of it
	listened bool     // somebody wants to hear of the job at all
}

// overdue finds the jobs whose last success is older than they allow, and keeps a row of audit_log for each, once for the
// fleet and for each success that grows too old. A job of which nothing was ever planned is not overdue.
func (s *store) overdue(ctx context.Context, ages []maxAge, who identity) (reported []overdueJob, err error) {
	err = s.tx(ctx, func(tx bun.Tx) error {
		reported, err = s.overdueIn(ctx, tx, ages, who)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for overdue jobs: %w", err)
	}
	return reported, nil
}

func (s *store) overdueIn(ctx context.Context, tx bun.Tx, ages []maxAge, who identity) (reported []overdueJob, err error) {
	if err := s.lock(ctx, tx, s.q.lockOverdue); err != nil {
		return nil, err
	}
	if err := tx.NewRaw(s.q.overdue, encode(ages)).Scan(ctx, &reported); err != nil {
		return nil, fmt.Errorf("selecting overdue jobs: %w", err)
	}
	rows := make([]auditRow, len(reported))
	for i, o := range reported {
		rows[i] = auditRow{
			Action: string(audit.JobOverdue), Outcome: "failure", Job: o.Job, Replica: who.Replica,
			Reason: o.reason(), Detail: detail(map[string]any{"since": o.Since.Time}),
		}
	}
	if err := s.sayOverdue(ctx, tx, ages, reported, who); err != nil {
		return nil, err
	}
	return reported, s.audit(ctx, tx, rows)
}

func (o *overdueJob) reason() string {
	if o.Succeeded {
		return "the last success is older than max_age"
	}
	return "there was no success within max_age"
}

// overdueDue looks for overdue jobs when it is time to.
func (s *Scheduler) overdueDue(ctx context.Context) error {
	now := s.o.Boot()
	if now < s.overdueAt || len(s.ages) == 0 {
		return nil
	}
	ctx, done := s.step(ctx, OpOverdue)
	defer done()
	reported, err := s.store.overdue(ctx, s.ages, s.who)
	if err != nil {
		return err
	}
	s.overdueAt = now + overdueEvery
	for i := range reported {
		o := &reported[i]
		audit.Log(s.o.Audit, audit.JobOverdue, audit.Failure, audit.Actor(audit.ActorReplica, s.o.Replica),
			audit.Replica(s.o.Replica), audit.Job(o.Job), audit.Reason(o.reason()), zap.Time("since", o.Since.Time))
		s.o.Log.Warn("a job is overdue: it has not succeeded for longer than its max_age", audit.Job(o.Job), zap.Time("since", o.Since.Time))
	}
	return nil
}

// agesOf are the jobs that must succeed now and then.
func agesOf(known []*jobs.Job) []maxAge {
	var ages []maxAge
	for _, j := range known {
		if j.MaxAge > 0 && j.Enabled {
			ages = append(ages, maxAge{
				Job: j.Name, MaxAge: j.MaxAge.Milliseconds(), channels: j.Notify[jobs.EventOverdue], listened: j.Listened(),
			})
		}
	}
	return ages
}
