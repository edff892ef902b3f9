//go:build !failpoints

// Package failpoint marks the places where tests stop or kill a daemon: between claim and start, before and after each
// statement of the scheduler's transactions, and so on. In a normal build nothing here does anything and the compiler
// removes it; `go build -tags failpoints` makes the build that the fleet tests use.
package failpoint

import (
	"context"
	"time"
)

// Enabled reports whether this build can be made to fail on purpose.
const Enabled = false

// Hit is called at the place with the given name.
func Hit(string) {}

// Statements makes the statements of tables known: structs whose string fields are SQL texts.
func Statements(...any) {}

// Every is how long to wait between two rounds of what is done now and then: d, unless a test cannot wait so long.
func Every(d time.Duration) time.Duration { return d }

// Step marks the context of a transaction with the name of the function that begins it: the caller of Step's caller.
func Step(ctx context.Context) context.Context { return ctx }

// WallOffset is how far this replica's wall clock is moved for a test.
func WallOffset() time.Duration { return 0 }
