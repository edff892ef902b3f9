package scheduler

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/failpoint"
	"github.com/cronlatch/cronlatch/jobs"
)

// What the loop does in one tick: each step bounds its transaction, keeps the scheduler's own state and says in the
// audit what was decided.

func (s *Scheduler) look(ctx context.Context) (glance, error) {
	ctx, done := s.step(ctx, OpLook)
	defer done()
	if err := s.o.Check(ctx); err != nil {
		return glance{}, err
	}
	sent := s.o.Boot()
	s.watchWall(sent)
	g, err := s.store.look(ctx)
	if err != nil {
		return glance{}, err
	}
	if step := s.clock.observe(g.Now.Time, sent); step != 0 {
		s.o.Log.Warn("the database's clock jumped: nothing is claimed until all earlier locks are over",
			zap.Duration("step", step), zap.Duration("for", s.o.TTL))
		s.clock.stepped(step)
	}
	return g, nil
}

// watchWall reports that this host's clock was set.
func (s *Scheduler) watchWall(boot time.Duration) {
	if s.o.Wall == nil {
		return
	}
	if step := s.wall.Observe(boot, boot, s.o.Wall()); step.Abs() > time.Second {
		s.o.Log.Warn("this host's clock was set; runs follow the database's clock", zap.Duration("step", step))
	}
}

// planDue plans the schedules that have an instant by the estimated clock.
func (s *Scheduler) planDue(ctx context.Context) (fresh bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if !s.loaded {
		if err := s.store.loadPositions(ctx, s.plans); err != nil {
			return false, err
		}
		s.loaded = true
	}
	now := s.clock.now()
	var due []*planned
	for _, p := range s.plans {
		if !p.next.IsZero() && !p.next.After(now) {
			due = append(due, p)
		}
	}
	if len(due) == 0 {
		return false, nil
	}
	due = s.piece.of(due)
	timed := s.timed(OpPlan)
	runs, err := s.store.plan(ctx, due, planRules{late: s.o.TTL})
	timed()
	s.piece.tried(len(due), err)
	for i := range runs {
		s.auditPlanned(&runs[i])
	}
	return true, err
}

func (s *Scheduler) auditPlanned(r *jobs.Run) {
	s.decided(audit.RunPlan, r)
	if r.State == jobs.StateFinished {
		s.auditEnded(r)
	}
}

// auditEnded says that a run was ended without running. What follows it need not wait for the next look.
func (s *Scheduler) auditEnded(r *jobs.Run) {
	s.decided(endAction(r.Outcome), r)
	s.endedUnrun(r)
	if r.Follow {
		s.Wake()
	}
}

// followDue plans what comes after the runs that have ended.
func (s *Scheduler) followDue(ctx context.Context) error {
	for {
		more, err := s.followSome(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// followSome is one look; more says that another one may find something. The audit has its rows like everything planned.
func (s *Scheduler) followSome(ctx context.Context) (more bool, err error) {
	ctx, done := s.step(ctx, OpFollow)
	defer done()
	found, err := s.store.followUp(ctx, s.chains)
	for i := range found.rows {
		s.auditPlanned(&found.rows[i])
	}
	for i := range found.stale {
		s.o.Log.Warn("for a day no replica has known what comes after a run; nothing follows it",
			audit.Job(found.stale[i].Job), audit.RunID(found.stale[i].ID))
	}
	return found.more, err
}

func endAction(o jobs.Outcome) audit.Action {
	switch o {
	case jobs.OutcomeSkipped:
		return audit.RunSkip
	case jobs.OutcomeMissed:
		return audit.RunMiss
	case jobs.OutcomeLost:
		return audit.RunLose
	default:
		return audit.RunFinish
	}
}

func (s *Scheduler) settleDue(ctx context.Context) error {
	ctx, done := s.step(ctx, OpSettle)
	defer done()
	ended, asked, err := s.store.settle(ctx)
	for i := range ended {
		s.auditEnded(&ended[i])
	}
	if err != nil || !asked {
		return err
	}
	return s.endAsked(ctx) // those that run here need not wait for the next look
}

// endAsked stops the runs of this replica that somebody has asked to end.
func (s *Scheduler) endAsked(ctx context.Context) error {
	ctx, done := s.step(ctx, OpCancel)
	defer done()
	asked, err := s.store.cancelling(ctx)
	for i := range asked {
		s.active.ask(asked[i])
	}
	return err
}

// claimDue claims and starts runs until nothing is due or no slot is free.
func (s *Scheduler) claimDue(ctx context.Context) error {
	for !s.draining && !s.asked.Load() && !s.clock.held() {
		free := s.o.Capacity - s.active.count()
		if free < 1 {
			return nil
		}
		more, err := s.claimSome(ctx, free)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// claimSome is one claim; more says that another one may find something.
func (s *Scheduler) claimSome(ctx context.Context, limit int) (more bool, err error) {
	ctx, done := s.step(ctx, OpClaim)
	defer done()
	won, unknown, err := s.store.claim(ctx, claimRequest{
		knows: s.runnable, not: s.unknown, labels: s.o.Labels, limit: limit, ttl: s.o.TTL, grace: s.o.Grace, who: s.who, boot: s.o.Boot,
	})
	for i := range won {
		won[i].job = s.active.jobs[won[i].run.Job]
	}
	var unanswered *commitError
	if errors.As(err, &unanswered) {
		s.maybe = append(s.maybe, won...)
	}
	if err != nil {
		return false, err
	}
	s.unknown = append(s.unknown, unknown...)
	if len(won) > 0 {
		failpoint.Hit("claimed")
	}
	for _, c := range won {
		s.launch(c) //nolint:contextcheck // a run outlives the tick that claimed it, and has deadlines of its own
	}
	return len(won)+len(unknown) > 0, nil
}

// runnable reports whether this replica can run a job: it knows it, and its file has it enabled.
func (s *Scheduler) runnable(name string) bool {
	j := s.active.jobs[name]
	return j != nil && j.Enabled
}

// settleUnknown asks what became of claims whose commit was not answered, and starts those that are ours. A start that
// comes too late for the lock is refused like any other.
func (s *Scheduler) settleUnknown(ctx context.Context) error {
	if len(s.maybe) == 0 {
		return nil
	}
	ctx, done := s.step(ctx, OpClaim)
	defer done()
	ours, err := s.store.settleClaims(ctx, s.maybe)
	if err != nil {
		return err
	}
	s.maybe = nil
	for _, c := range ours {
		s.launch(c) //nolint:contextcheck // a run outlives the tick that claimed it, and has deadlines of its own
	}
	return nil
}

func (s *Scheduler) recoverDue(ctx context.Context) error {
	ctx, done := s.step(ctx, OpRecover)
	defer done()
	lost, err := s.store.recoverLost(ctx, s.who)
	for i := range lost {
		s.decided(audit.RunLose, &lost[i].run)
		s.endedUnrun(&lost[i].run)
		if lost[i].next != nil {
			s.decided(audit.RunRetry, lost[i].next)
		}
	}
	if len(lost) > 0 {
		s.Wake()
	}
	return err
}

// decided writes one audit line about a run.
func (s *Scheduler) decided(a audit.Action, r *jobs.Run) {
	fields := []zap.Field{
		audit.Actor(audit.ActorReplica, s.o.Replica), audit.Replica(s.o.Replica), audit.Job(r.Job), audit.RunID(r.ID),
		audit.ScheduledAt(r.ScheduledAt), audit.Resource(r.Resource), zap.Int("attempt", r.Attempt),
	}
	if r.Owner != "" {
		fields = append(fields, audit.Owner(r.Owner), audit.Token(r.FencingToken))
	}
	if r.Outcome != "" {
		fields = append(fields, audit.RunOutcome(string(r.Outcome)))
	}
	if r.Reason != "" {
		fields = append(fields, audit.Reason(string(r.Reason)))
	}
	if r.StartedAt != nil {
		fields = append(fields, zap.Duration("late_by", r.StartedAt.Sub(r.ScheduledAt).Round(time.Millisecond)))
	}
	outcome := audit.Success
	if r.Outcome == jobs.OutcomeLost {
		outcome = audit.Unknown
	}
	audit.Log(s.o.Audit, a, outcome, fields...)
}
