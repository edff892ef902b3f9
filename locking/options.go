package locking

import (
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
)

type openConfig struct {
	keeper   KeeperConfig
	renewals Store
	grace    time.Duration
}

// Option configures Open.
type Option func(*openConfig) error

func setting(f func(c *openConfig)) Option {
	return func(c *openConfig) error {
		f(c)
		return nil
	}
}

// WithLogger sets the operator's log; the default is silent.
func WithLogger(l *zap.Logger) Option { return setting(func(c *openConfig) { c.keeper.Logger = l }) }

// WithAudit sets the logger for one line per grant, takeover, loss and release; the default is silent.
func WithAudit(l *zap.Logger) Option { return setting(func(c *openConfig) { c.keeper.Audit = l }) }

// DefaultLease sets the TTL of locks that do not name theirs.
func DefaultLease(ttl time.Duration) Option {
	return setting(func(c *openConfig) { c.keeper.TTL = ttl })
}

// TakeoverGrace sets how long an expired lock of another owner stays taken beyond its expiry, for the case that the
// database's clock steps forward by more than the margin; 0 by default. All users of a resource should agree on it.
func TakeoverGrace(d time.Duration) Option { return setting(func(c *openConfig) { c.grace = d }) }

// OnClockStep sets what is called when the database's clock stepped: see KeeperConfig.
func OnClockStep(f func(step time.Duration)) Option {
	return setting(func(c *openConfig) { c.keeper.OnClockStep = f })
}

// BootClock replaces the clock of the deadlines, for tests.
func BootClock(now func() time.Duration) Option {
	return setting(func(c *openConfig) { c.keeper.Boot = now })
}

type acquireConfig struct {
	AcquireRequest

	stopGrace time.Duration
	onExtend  func(stopAt, deadline time.Duration)
	ownOwner  bool // made for this call
}

// AcquireOption configures Locker.Acquire.
type AcquireOption func(*acquireConfig) error

// TTL is how long the lock lives without renewal, from 1s to 24h.
func TTL(d time.Duration) AcquireOption {
	return func(c *acquireConfig) error {
		c.TTL = d
		return nil
	}
}

// Owner names the holder; the default is unique for each call. Whoever knows an owner can renew and release its locks,
// and gets them again by asking: use one for each holder, never the name of a host.
func Owner(owner string) AcquireOption {
	return func(c *acquireConfig) error {
		c.Owner = owner
		return ValidateOwner(owner)
	}
}

// Metadata is shown to those who do not get the lock; v must encode as a JSON object.
func Metadata(v any) AcquireOption {
	return func(c *acquireConfig) (err error) {
		if c.Metadata, err = json.Marshal(v); err != nil {
			return fmt.Errorf("%w: metadata: %w", ErrInvalid, err)
		}
		return nil
	}
}

// StopGrace asks that the lock's context ends this much before the deadline, for work that needs time to stop; how much
// of it there is follows from the TTL (see Lease).
func StopGrace(d time.Duration) AcquireOption {
	return func(c *acquireConfig) error {
		if d < 0 {
			return invalid("stop grace", "%s is negative", d)
		}
		c.stopGrace = d
		return nil
	}
}

// OnExtend is called after each renewal: see Grant.
func OnExtend(f func(stopAt, deadline time.Duration)) AcquireOption {
	return func(c *acquireConfig) error {
		c.onExtend = f
		return nil
	}
}

func forceFields(f Force, r *Record) []zap.Field {
	return []zap.Field{
		audit.Actor(audit.ActorUser, f.Actor), audit.Resource(r.Resource), audit.Owner(r.Owner),
		audit.Token(r.FencingToken), audit.Reason(f.Reason),
	}
}
