package jobs

import "time"

// Overlap decides what an occurrence does when an earlier one of the same job is unfinished.
type Overlap string

// The overlap policies.
const (
	OverlapSkip    Overlap = "skip"    // finished as skipped, reason overlap
	OverlapQueue   Overlap = "queue"   // waits, oldest first; at most one waits, more become skipped
	OverlapReplace Overlap = "replace" // the earlier ones are cancelled, reason replaced; starts when their processes are dead
	OverlapAllow   Overlap = "allow"   // starts beside them; each occurrence locks a name of its own
)

// CatchUpPolicy decides which of the instants that fell due while nobody planned still run.
type CatchUpPolicy string

// The catch-up policies.
const (
	CatchUpNone   CatchUpPolicy = "none"
	CatchUpLatest CatchUpPolicy = "latest"
	CatchUpAll    CatchUpPolicy = "all"
)

// CatchUp is the policy with its bounds: only instants younger than Window, and the newest Max of them.
type CatchUp struct {
	Policy CatchUpPolicy
	Window time.Duration
	Max    int
}

// OnLost decides what follows a run whose replica was lost in the middle.
type OnLost string

// The policies after a lost run.
const (
	OnLostFail  OnLost = "fail"  // nothing: at most once
	OnLostRetry OnLost = "retry" // the next attempt: at least once, 3 attempts
	OnLostHold  OnLost = "hold"  // the next attempt waits for a person
)

// The defaults of a job's keys.
const (
	DefaultKillAfter     = 10 * time.Second
	DefaultStartDeadline = time.Hour
	DefaultCatchUpWindow = time.Hour
	DefaultCatchUpMax    = 100
	LostAttempts         = 3 // what on_lost: retry allows in total
)

// Job is one named definition. It is immutable once loaded; its identity is its literal Name.
type Job struct {
	Name        string
	Description string
	Tags        []string

	// Schedule is nil for a job that runs after others, or by hand only.
	Schedule *Schedule
	Jitter   time.Duration // how much later than its instant a run may become due; see DueAt. 0 is not at all
	Resource Template      // which name is locked; the job's own name unless said otherwise

	// Exactly one of Command (argv, no shell), Run (shell text for /bin/sh -c), HTTP and SQL is set.
	Command []string
	Run     string
	HTTP    *HTTP
	SQL     *SQL
	Env     map[string]string // added to the small environment every job gets

	Timeout       time.Duration // 0 is none
	KillAfter     time.Duration // between SIGTERM and SIGKILL
	StartDeadline time.Duration // after the due instant; then the run is missed. 0 is none
	Overlap       Overlap
	CatchUp       CatchUp
	OnLost        OnLost
	Retry         Retry // after a failure or a timeout
	ExitCodes     ExitCodes
	OncePer       OncePer
	Limits        map[string]int // of the job's tags: how many runs with the tag the whole fleet has at a time
	OnlyOn        Labels         // which replicas may run it; nil is all
	MaxAge        time.Duration  // how old the last success may become; 0 is no matter how old
	LateAfter     time.Duration  // how long after its instant a run may begin before it is late; 0 is no matter how long
	Enabled       bool

	Params    map[string]Param  // what a manual run may be given; nil is nothing
	Secrets   map[string]Secret // environment of commands that is never shown; nil is none
	User      string            // the account that the command runs as; "" is the daemon's
	AllowRoot bool              // User may be root
	Notify    Notify
	Ping      Secret // the URL that hears of each start and end; "" is none
	// PingAllowPrivate says that the address of Ping may be a private or a loopback one.
	PingAllowPrivate bool

	History History // how long its runs are kept; the zero value is what the configuration says for all

	After    []After // the jobs that it comes after; then it has no Schedule
	HookOf   string  // the job whose hook this is: on_success, on_failure or on_abort; "" is a job of its own
	Followed bool    // other jobs come after it: Link sets it
}

// OncePer is what a job runs once for.
type OncePer string

// What a job may run once for.
const (
	OncePerOccurrence OncePer = "occurrence"
	// OncePerResource: after a success, later occurrences with the same resource are skipped, reason once_per. A manual
	// trigger is no occurrence: whoever asks gets a run.
	OncePerResource OncePer = "resource"
)

// MaxAttempts is how many attempts one occurrence may have in total, lost ones included. After a failure it is
// Retry.Attempts that counts, which may be fewer.
func (j *Job) MaxAttempts() int {
	least := 1
	if j.OnLost == OnLostRetry {
		least = LostAttempts
	}
	return max(least, j.Retry.Attempts)
}
