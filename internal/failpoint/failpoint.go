//go:build !failpoints

// Package failpoint marks the places where tests stop or kill a daemon: between claim and start, before a commit, and
// so on. In a normal build Hit does nothing and the compiler removes it; `go build -tags failpoints` makes the build
// that the fleet tests use.
package failpoint

import "time"

// Enabled reports whether this build can be made to fail on purpose.
const Enabled = false

// Hit is called at the place with the given name.
func Hit(string) {}

// WallOffset is how far this replica's wall clock is moved for a test.
func WallOffset() time.Duration { return 0 }
