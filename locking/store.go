package locking

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// MaxToken is the largest fencing token: tokens stay exact in a JSON reader that keeps numbers as float64.
const MaxToken = 1<<53 - 1

var (
	// ErrHeld says that another owner holds the resource. It is a normal answer, not a failure;
	// errors.As with *HeldError gives the holder.
	ErrHeld = errors.New("locking: held by another owner")
	// ErrLost is the cause of a lock's cancelled context, and the answer to a renewal of a lock that is not (or no
	// longer) this owner's.
	ErrLost = errors.New("locking: lost")
	// ErrNotFound says that there is no lock on the resource, or that it has expired or was released.
	ErrNotFound = errors.New("locking: no such lock")
	// ErrNotOwner says that the resource is held, and by somebody else.
	ErrNotOwner = errors.New("locking: another owner holds it")
	// ErrStaleToken says that the fencing token that came with the call is not the current one.
	ErrStaleToken = errors.New("locking: the fencing token is not the current one")
	// ErrUnknown is the answer to one claim of a batch whose outcome is not known: its row stayed locked by another
	// transaction, or its statement was not answered. It says nothing about the lock: ask again.
	ErrUnknown = errors.New("locking: the outcome is not known")
	// ErrInvalid is in every error that refuses a call because of its arguments; nothing was sent to the database.
	ErrInvalid = errors.New("locking: invalid argument")
)

// Record is the database row of a resource as one statement saw it.
type Record struct {
	ID           int64
	Resource     string
	Owner        string
	Principal    string // who authenticated when the lock was taken; "" for who came by the database
	FencingToken int64
	AcquiredAt   time.Time  // when ownership was last established, by the database's clock, UTC
	RenewedAt    time.Time  // the last renewal (or the grant)
	ExpiresAt    time.Time  // the lock is expired when Now >= ExpiresAt
	ReleasedAt   *time.Time // nil while nobody released or force-released it
	Metadata     json.RawMessage
	// Now is the database's clock when the statement that read or wrote the row ran.
	Now time.Time
}

// HeldError is ErrHeld with the holder as the losing attempt saw it.
type HeldError struct{ Holder Record }

func (e *HeldError) Error() string { return ErrHeld.Error() + ": " + e.Holder.Resource }

// Unwrap makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Unwrap() error { return ErrHeld }

// AcquireRequest asks for one resource. A grant happens only when no other owner holds it.
type AcquireRequest struct {
	Resource string
	Owner    string
	// Principal is who asks, as a server that authenticates its callers knows it; "" for who came by the database. The
	// holder is both: the same owner of another principal is another holder.
	Principal string
	TTL       time.Duration   // at least 1ms, at most 24h
	Metadata  json.RawMessage // a JSON object of at most 16 KiB; nil is {}
	// Grace is how long an expired lock of another owner stays taken beyond its expiry (takeover_grace); 0 is none.
	// A lock that its owner released is free at once; a forced one waits like an expired one.
	Grace time.Duration
}

// AcquireResult answers one AcquireRequest.
type AcquireResult struct {
	// Acquired says whether Record is this owner's grant (true) or the holder's row (false).
	Acquired bool
	// Takeover says that the grant replaced another owner's lock that had expired without its owner releasing it.
	Takeover bool
	// Extended says that the owner already held the lock: same token, new expiry, new AcquiredAt.
	Extended bool
	// Record is the row after a grant, else the holder's row. An empty Owner: the holder went away in between, or a server
	// does not tell it.
	Record Record
}

// Claim names one held lock: what a renewal or a release must match exactly.
type Claim struct {
	Resource  string
	Owner     string
	Principal string // that of the acquire
	// FencingToken must be the current one when it is not 0.
	FencingToken int64
	// TTL is the new life from the database's now on; it may be shorter than what is left. Only renewals use it.
	TTL time.Duration
}

// ClaimResult answers one Claim of a batch.
type ClaimResult struct {
	// Err is nil when the claim was renewed or released. ErrLost (renewal), ErrNotFound, ErrNotOwner or ErrStaleToken
	// (release) are facts read from the database. An error with ErrUnknown in it is not: the claim may or may not have
	// been served, while the others of the batch were.
	Err    error
	Record Record // the row after the call when Err is nil
}

// ListFilter selects locks for Store.List; the zero value selects the first 100 live ones.
type ListFilter struct {
	Prefix string // of the resource, byte by byte
	Owner  string // exact; empty is any
	State  State  // StateHeld by default
	After  string // resources strictly after this one (byte order): the cursor
	Limit  int    // 0 is 100; at most 1000
}

// State tells held locks from others in ListFilter.
type State string

// The states a list can be asked for.
const (
	StateHeld    State = "held"    // live: now < expires_at
	StateExpired State = "expired" // expired and never released: what a crashed owner leaves behind
)

// Force describes a force-release: an administrator takes a lock away from its holder.
type Force struct {
	Resource     string
	FencingToken int64  // of the grant that is to end; another one is ErrStaleToken
	Reason       string // shown in the audit
	Actor        string // who asked, for the audit
	Replica      string // the daemon that was asked, for the audit; "" when it was none
	// Immediate frees the name at once. Otherwise renewal is refused from now on and the name stays taken until the
	// old expiry, so that the holder stops first.
	Immediate bool
}

// Store is the lock table of one database. Every method is one statement (or one short transaction), never waits for
// a lock to become free, and takes its time from the database's clock. An error means that the outcome is unknown,
// unless it is ErrInvalid: a granted or refused lock is always in the results. A method returns soon after its context
// has ended.
//
// Batches are answered in the order of the requests, whatever the order of execution; no resource may occur twice.
type Store interface {
	// Acquire grants what is free, extends what the same owner already holds, and reports the holders of the rest.
	Acquire(ctx context.Context, reqs []AcquireRequest) ([]AcquireResult, error)
	// Renew gives each claim a new life, from the database's now on. It needs the exact owner and a lock that is
	// neither expired nor (force-)released.
	Renew(ctx context.Context, claims []Claim) ([]ClaimResult, error)
	// Release frees the names at once. The owner of a force-released lock may release it too: it says that it stopped.
	Release(ctx context.Context, claims []Claim) ([]ClaimResult, error)
	// Get returns the live lock of a resource, else ErrNotFound.
	Get(ctx context.Context, resource string) (Record, error)
	// List returns locks in the byte order of their resources.
	List(ctx context.Context, f ListFilter) ([]Record, error)
	// ForceRelease ends the grant with the given token and notes it in the audit table, in one transaction; ErrNotFound
	// when the resource is not held.
	ForceRelease(ctx context.Context, f Force) (Record, error)
	// Purge deletes rows released or expired longer than olderThan ago, at most limit of them, and returns how many.
	// Tokens go on growing. olderThan must be at least one minute: longer than any statement can last. limit is 1 to
	// 10,000.
	Purge(ctx context.Context, olderThan time.Duration, limit int) (int, error)
	// Now is the database's clock.
	Now(ctx context.Context) (time.Time, error)
}
