// Package auth knows who calls the HTTP API and what they may do.
package auth

import (
	"errors"
	"strings"
)

// Role is what a token allows. The zero value allows nothing.
type Role string

// The roles. An admin may do everything, an operator whatever a viewer may; a locker stands beside them.
const (
	Viewer   Role = "viewer"   // read state
	Locker   Role = "locker"   // take, renew, release and read locks whose names begin with the token's prefix
	Operator Role = "operator" // viewer, and trigger, cancel, pause
	Admin    Role = "admin"    // everything
)

// Principal is an authenticated caller.
type Principal struct {
	ID     string // of the token; locks belong to it
	Role   Role
	Prefix string // of the names that a Locker may lock; "" is every name
}

var (
	// ErrUnauthenticated says that there is no such token, or that it has expired or was revoked. It does not say which.
	ErrUnauthenticated = errors.New("auth: not a valid token")
	// ErrUnavailable says that it could not be found out, because the database does not answer.
	ErrUnavailable = errors.New("auth: the tokens cannot be checked now")
)

// Covers reports whether the principal's locks may have the name.
func (p Principal) Covers(resource string) bool {
	return p.Role == Admin || p.Role == Locker && strings.HasPrefix(resource, p.Prefix)
}
