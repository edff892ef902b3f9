//go:build !linux && !darwin

package boottime

import "time"

const countsSuspend = false

var start = time.Now() //nolint:gochecknoglobals // the zero of a process-wide clock

func now() time.Duration { return time.Since(start) }
