package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// On macOS CLOCK_MONOTONIC goes on in sleep (CLOCK_UPTIME_RAW, which Go uses, does not).
const countsSuspend = true

func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("boottime: reading CLOCK_MONOTONIC: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
