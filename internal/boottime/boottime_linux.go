package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

const countsSuspend = true

func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		// The kernel has had this clock since 2.6.39 and the call has no other way to fail.
		panic("boottime: reading CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
