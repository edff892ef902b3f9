package audit

import (
	"strings"
	"time"

	"go.uber.org/zap"
)

// Action says what was decided; its values are the closed list of the audit.
type Action string

// The actions.
const (
	LockAcquire      Action = "lock.acquire"
	LockTakeover     Action = "lock.takeover"
	LockRenewFail    Action = "lock.renew_fail"
	LockLose         Action = "lock.lose"
	LockRelease      Action = "lock.release"
	LockForceRelease Action = "lock.force_release"
	RunPlan          Action = "run.plan"
	RunClaim         Action = "run.claim"
	RunStart         Action = "run.start"
	RunFinish        Action = "run.finish"
	RunSkip          Action = "run.skip"
	RunMiss          Action = "run.miss"
	RunLose          Action = "run.lose"
	RunCancel        Action = "run.cancel"
	RunRetry         Action = "run.retry"
	RunTrigger       Action = "run.trigger"
	ConfigLoad       Action = "config.load"
	ConfigReject     Action = "config.reject"
	JobDefine        Action = "job.define" // a job is new, or its definition changed
	JobRemove        Action = "job.remove"
	JobPause         Action = "job.pause"
	JobResume        Action = "job.resume"
	JobBackfill      Action = "job.backfill"
	JobOverdue       Action = "job.overdue"    // no success for longer than max_age
	NotifyGiveUp     Action = "notify.give_up" // a message was tried for a day in vain
	ChannelTest      Action = "channel.test"
	ReplicaJoin      Action = "replica.join"
	ReplicaDrain     Action = "replica.drain"
	ReplicaUndrain   Action = "replica.undrain"
	ReplicaLeave     Action = "replica.leave"
	ReplicaExpire    Action = "replica.expire"
	ClockStep        Action = "clock.step" // the database's clock was seen to jump
	AuthDeny         Action = "auth.deny"  // a caller was not known, or may not do what it asked for
	TokenCreate      Action = "token.create"
	TokenRevoke      Action = "token.revoke"
)

// Actions are all of them.
func Actions() []Action {
	return []Action{
		LockAcquire, LockTakeover, LockRenewFail, LockLose, LockRelease, LockForceRelease, RunPlan, RunClaim, RunStart, RunFinish,
		RunSkip, RunMiss, RunLose, RunCancel, RunRetry, RunTrigger, ConfigLoad, ConfigReject, JobDefine, JobRemove, JobPause, JobResume,
		JobBackfill, JobOverdue, NotifyGiveUp, ChannelTest, ReplicaJoin, ReplicaDrain, ReplicaUndrain, ReplicaLeave, ReplicaExpire,
		ClockStep, AuthDeny, TokenCreate, TokenRevoke,
	}
}

// message is the constant text of an action: "lock.renew_fail" reads "lock renew fail".
func (a Action) message() string { return strings.NewReplacer(".", " ", "_", " ").Replace(string(a)) }

// Outcome says how the decision itself went, not how the job ended.
type Outcome string

// The outcomes of an action.
const (
	Success Outcome = "success"
	Failure Outcome = "failure"
	Unknown Outcome = "unknown"
)

const (
	keyAction  = "event.action"
	keyOutcome = "event.outcome"
)

// ActorType says what kind of thing decided.
type ActorType string

// The kinds of actors.
const (
	ActorReplica ActorType = "replica"
	ActorUser    ActorType = "user"
	ActorSystem  ActorType = "system"
)

// Actor is who decided: a replica's name, a user, a principal.
func Actor(t ActorType, id string) zap.Field {
	return zap.Inline(actor{t, id})
}

// Job is the literal name of the job.
func Job(name string) zap.Field { return zap.String("job", name) }

// RunID is the ledger's id of the run.
func RunID(id int64) zap.Field { return zap.Int64("run.id", id) }

// RunOutcome is how the run ended.
func RunOutcome(o string) zap.Field { return zap.String("run.outcome", o) }

// ScheduledAt is the instant of the occurrence.
func ScheduledAt(t time.Time) zap.Field { return zap.String("scheduled_at", FormatTime(t)) }

// Resource is the name that is locked.
func Resource(name string) zap.Field { return zap.String("resource", name) }

// Owner is the token that identifies one holder.
func Owner(o string) zap.Field { return zap.String("owner", o) }

// Token is the fencing token.
func Token(t int64) zap.Field { return zap.Int64("fencing_token", t) }

// Replica is the name of the daemon process that writes the line.
func Replica(name string) zap.Field { return zap.String("replica", name) }

// Target is the name of the replica that was asked to do something.
func Target(name string) zap.Field { return zap.String("target", name) }

// Tag is the tag by which jobs were chosen.
func Tag(name string) zap.Field { return zap.String("tag", name) }

// Reason is a reason code or a short sentence of the project's own; never text from outside in the message.
func Reason(r string) zap.Field { return zap.String("reason", r) }

// RequestID is the id under which the caller knows the request, and the daemon's own log has it.
func RequestID(id string) zap.Field { return zap.String("request.id", id) }

// Operation is what the caller asked for, as the OpenAPI document calls it.
func Operation(id string) zap.Field { return zap.String("operation", id) }

// Immediate says whether a force-release freed the name at once.
func Immediate(at bool) zap.Field { return zap.Bool("immediate", at) }

// Err is the text of an error; it must not contain a secret.
func Err(err error) zap.Field { return zap.NamedError("error", err) }

// Definitions is the hash of the jobs' definitions.
func Definitions(hash string) zap.Field { return zap.String("definitions", hash) }

// Problems are what is wrong with a configuration, each with its position; they must not contain a secret.
func Problems(list []string) zap.Field { return zap.Strings("problems", list) }
