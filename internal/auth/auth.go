// Package auth knows who calls the HTTP API and what they may do.
//
// Model: a token is a text cl_<id>_<secret>; whoever has it is the principal with that id, and has its role. Only the
// SHA-256 of a token is kept: in the configuration, and in the table api_tokens that all replicas share (Store). Tokens
// puts both together for the API. EnsureAdmin makes the first token of a fresh fleet.
//
// Guarantees: a revocation and a new token in the table hold on every replica that can reach the database within a second
// (Freshness) of being written, expiry is by the database's clock, and hashes are compared in constant time. A token that
// is unknown, expired or revoked is refused in the same words. At most one query a second is sent, whatever callers send.
// The admin token of a fleet is one: the first replica wins, and others leave no file behind.
//
// Not guaranteed: that a revocation is seen by a replica that cannot reach the database; it goes on with what it knew, and
// after a restart with the configuration alone. (Locks need the same database, so there is little to do with such a token.)
// A principal is a name, not a person: who copies a token is its bearer.
//
// Failure: what cannot be known is ErrUnavailable and never a yes.
//
// Tests: Tokens in a synctest bubble with a table that hangs, lies in the past or is away; Store and EnsureAdmin on both
// databases.
package auth

import (
	"errors"
	"slices"
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

// Roles are all of them.
func Roles() []Role { return []Role{Viewer, Locker, Operator, Admin} }

func (r Role) valid() bool { return slices.Contains(Roles(), r) }

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
