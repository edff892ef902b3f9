package jobs

// Outcomes are all of them.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeSucceeded, OutcomeFailed, OutcomeTimedOut, OutcomeCancelled, OutcomeSkipped, OutcomeMissed, OutcomeLost,
	}
}

// Reasons are all codes that a run may have as its reason.
func Reasons() []Reason {
	return []Reason{
		ReasonOverlap, ReasonDisabled, ReasonLockHeld, ReasonNoCapacity, ReasonNoReplica, ReasonCatchUp, ReasonExit, ReasonSignal,
		ReasonStart, ReasonTimeout, ReasonDrain, ReasonLeaseLost, ReasonReplicaLost, ReasonStaleStart, ReasonSupervisor,
		ReasonRequested, ReasonReplaced, ReasonOncePer, ReasonLimit, ReasonUpstream, ReasonPaused, ReasonNoMatchingReplica,
		ReasonHTTPStatus, ReasonHTTPBody, ReasonSQL, ReasonError, ReasonPanic,
	}
}
