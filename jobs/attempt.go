package jobs

import "time"

// Attempt is what an executor needs to start one run.
type Attempt struct {
	Job *Job
	Run Run
	// LockExpires is when the lock expires unless it is renewed, by the database's clock.
	LockExpires time.Time
	// StopAt and Deadline are on the boot clock: SIGTERM at StopAt, SIGKILL at Deadline, unless Process.Extend moves
	// them. A start that comes after StopAt is refused.
	StopAt, Deadline time.Duration
}

// Cause says what ended an attempt's process tree.
type Cause string

// The causes.
const (
	CauseExited         Cause = "exited"          // by itself: ExitCode or Signal says how
	CauseTimeout        Cause = "timeout"         // the job's timeout passed
	CauseStopped        Cause = "stopped"         // somebody called Stop
	CauseDeadline       Cause = "deadline"        // the lock was not renewed in time
	CauseSupervisorGone Cause = "supervisor_gone" // the supervisor process died
)

// Result is how an attempt ended; valid when its whole process tree is dead.
type Result struct {
	Cause    Cause
	ExitCode int    // of the main process; meaningless when Signal is set
	Signal   string // "SIGKILL"; empty when the process exited
	Output   Output
}

// StartError says that an attempt could not be started.
type StartError struct {
	// Lost is the reason when it was not the command's fault: the start came after the lock's deadline and was refused
	// (stale_start), or the supervisor died (supervisor). The attempt is lost then, and on_lost decides. Else empty.
	Lost Reason
	// ExitCode is what a shell would answer: 127 not found, 126 not executable. 0 when Lost is set.
	ExitCode int
	Message  string
}

func (e *StartError) Error() string { return "jobs: starting the command: " + e.Message }
