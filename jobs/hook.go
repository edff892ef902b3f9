package jobs

import "strings"

// A hook is a job that configuration derives from another one. These are the names of hooks, and the ends that they
// come after.

// HookKinds are the hooks that a job may have, as their keys are called.
func HookKinds() []Trigger { return []Trigger{TriggerOnSuccess, TriggerOnFailure, TriggerOnAbort} }

// HookEnd is the end of a run that a hook comes after; "" for a trigger that is no hook's.
func HookEnd(kind Trigger) AfterOn {
	switch kind {
	case TriggerOnSuccess:
		return AfterSuccess
	case TriggerOnFailure:
		return AfterFailure
	case TriggerOnAbort:
		return AfterAbort
	case TriggerSchedule, TriggerCatchUp, TriggerManual, TriggerRetry, TriggerRecovery, TriggerBackfill, TriggerAfter:
	}
	return ""
}

// HookName is the name of a job's hook: backup#on_failure.
func HookName(job string, kind Trigger) string { return job + "#" + string(kind) }

// SplitHookName takes the name of a hook apart. ok is false for any other name.
func SplitHookName(name string) (job string, kind Trigger, ok bool) {
	for _, kind := range HookKinds() {
		if job, ok := strings.CutSuffix(name, "#"+string(kind)); ok {
			return job, kind, true
		}
	}
	return "", "", false
}
