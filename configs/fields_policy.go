package configs

import (
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

func policyFields() []field[jobDraft] {
	return []field[jobDraft]{
		{
			key: "resource", doc: "The name that a run locks; the job's name unless set. YYYY-MM and the like are filled from the scheduled instant.",
			bind: func(d *jobDraft) sink { return text{into: &d.resource} },
		},
		{
			key: "resource_offset", doc: "Moves the date in the resource: -1mo is the month before the scheduled instant.",
			bind: func(d *jobDraft) sink { return text{into: &d.resourceOffset} },
		},
		{
			key: "overlap", initial: string(jobs.OverlapSkip), shared: true, doc: "What a due run does while an earlier one of the same job is unfinished: skip, queue (one waits), replace (the earlier one is cancelled), or allow (they run side by side, each with a resource of its own).",
			bind: func(d *jobDraft) sink {
				return choice[jobs.Overlap]{into: &d.overlap, words: []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapQueue, jobs.OverlapReplace, jobs.OverlapAllow}}
			},
		},
		{
			key: "once_per", initial: string(jobs.OncePerOccurrence), doc: "resource: once a run has succeeded, later occurrences with the same resource are skipped, for ever; a manual trigger is not.",
			bind: func(d *jobDraft) sink {
				return choice[jobs.OncePer]{into: &d.policies.oncePer, words: []jobs.OncePer{jobs.OncePerOccurrence, jobs.OncePerResource}}
			},
		},
		{
			key: "catch_up", shared: true, doc: "Which instants still run that fell due while no replica planned.",
			bind: func(d *jobDraft) sink {
				return group[jobs.CatchUp]{catchUpFields(), &d.catchUp, "{policy: latest, window: 1h}"}
			},
		},
		{
			key: "start_deadline", initial: "1h", shared: true, doc: "How long after its instant a run may still start; then it is missed.",
			bind: func(d *jobDraft) sink { return duration{into: &d.startDeadline, min: time.Second} },
		},
		{
			key: "retry", shared: true, doc: "Whether and when a run that failed or timed out is tried again, on any replica. Meanwhile `overlap` counts it as unfinished.",
			bind: func(d *jobDraft) sink {
				return checked[jobs.Retry]{group[jobs.Retry]{retryFields(), &d.policies.retry, "{attempts: 3, delay: 1m}"}, checkRetry}
			},
		},
		{
			key: "exit_codes", shared: true, doc: "What the exit codes of the command mean; all others are failures.",
			bind: func(d *jobDraft) sink {
				return checked[jobs.ExitCodes]{group[jobs.ExitCodes]{exitCodeFields(), &d.policies.exitCodes, "{success: [0], skip: [75]}"}, checkExitCodes}
			},
		},
		{
			key: "on_lost", initial: string(jobs.OnLostFail), shared: true, doc: "What follows a run whose replica was lost: nothing, the next of three attempts, or a person.",
			bind: func(d *jobDraft) sink {
				return choice[jobs.OnLost]{into: &d.onLost, words: []jobs.OnLost{jobs.OnLostFail, jobs.OnLostRetry, jobs.OnLostHold}}
			},
		},
	}
}

func catchUpFields() []field[jobs.CatchUp] {
	return []field[jobs.CatchUp]{
		{
			key: "policy", initial: string(jobs.CatchUpLatest), doc: "none, the latest one, or all of them in order.",
			bind: func(c *jobs.CatchUp) sink {
				return choice[jobs.CatchUpPolicy]{into: &c.Policy, words: []jobs.CatchUpPolicy{jobs.CatchUpNone, jobs.CatchUpLatest, jobs.CatchUpAll}}
			},
		},
		{
			key: "window", initial: "1h", doc: "How old an instant may be.",
			bind: func(c *jobs.CatchUp) sink { return duration{into: &c.Window, min: time.Second} },
		},
		{
			key: "max", initial: "100", doc: "How many instants at most; the newest ones.",
			bind: func(c *jobs.CatchUp) sink { return number{&c.Max, 1, 10_000} },
		},
	}
}
