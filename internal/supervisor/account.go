package supervisor

import (
	"fmt"
	"syscall"
)

// assume makes this process one of the account, for good: the daemon's groups and privileges do not come back. Its output
// becomes the account's, too, or a command could not open /dev/stdout.
func assume(a *Account) error {
	if a == nil {
		return nil
	}
	for _, fd := range []int{1, 2} {
		_ = syscall.Fchown(fd, a.UID, a.GID) // a convenience; writing needs no owner
	}
	if err := syscall.Setgroups(a.Groups); err != nil {
		return fmt.Errorf("setting the groups of the account %d: %w", a.UID, err)
	}
	if err := syscall.Setgid(a.GID); err != nil {
		return fmt.Errorf("becoming the group %d: %w", a.GID, err)
	}
	if err := syscall.Setuid(a.UID); err != nil {
		return fmt.Errorf("becoming the account %d: %w", a.UID, err)
	}
	// The kernel forgets the signal when a process becomes somebody else. That the supervisor has not ended meanwhile is
	// looked at after this, once more.
	return dieWithParent()
}
