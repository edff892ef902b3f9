package locking

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cronlatch/cronlatch/internal/resource"
)

// The limits of the arguments. MinTTL is what a database can keep apart; a keeper needs MinKeptTTL.
const (
	MinTTL         = time.Millisecond
	MaxTTL         = 24 * time.Hour
	MaxGrace       = 24 * time.Hour
	MaxOwnerBytes  = 1024
	MaxReasonBytes = 4096
	MinPurgeAge    = time.Minute
	MaxPurge       = 10_000
	MaxList        = 1000
	DefaultList    = 100
)

// ValidateResource is the rule for names: 1 to 255 bytes of valid UTF-8 without control or format characters, and not
// "." or "..". Databases rewrite or cut other bytes silently, and then two names become one.
func ValidateResource(name string) error {
	if err := resource.Validate(name); err != nil {
		return &InvalidError{Argument: "resource", Problem: err.Error(), Err: err}
	}
	return nil
}

// ValidateOwner is the rule for owners: not blank, at most 1,024 bytes of valid UTF-8 without control characters.
func ValidateOwner(owner string) error {
	switch {
	case strings.TrimSpace(owner) == "":
		return invalid("owner", "is blank")
	case len(owner) > MaxOwnerBytes:
		return invalid("owner", "has %d bytes; at most %d are allowed", len(owner), MaxOwnerBytes)
	case !utf8.ValidString(owner):
		return invalid("owner", "is not valid UTF-8")
	case strings.ContainsFunc(owner, unicode.IsControl):
		return invalid("owner", "has a control character")
	}
	return nil
}

// NewOwner returns a random owner: unique, so that only who got it can renew or release what it is used for.
func NewOwner() string { return rand.Text() }

// validatePrincipal lets through what a server knows its callers by, and nobody.
func validatePrincipal(principal string) error {
	if len(principal) > MaxOwnerBytes || !utf8.ValidString(principal) || strings.ContainsFunc(principal, unicode.IsControl) {
		return invalid("principal", "is longer than %d bytes, not valid UTF-8, or has a control character", MaxOwnerBytes)
	}
	return nil
}

// InvalidError is ErrInvalid with the argument that is at fault and why.
type InvalidError struct {
	Argument string // "resource", "owner", "TTL", "metadata", ...
	Problem  string // a clause about it: "is blank"
	Err      error  // the cause; may be nil
}

func (e *InvalidError) Error() string {
	return ErrInvalid.Error() + ": " + e.Argument + ": " + e.Problem
}

// Unwrap makes errors.Is(err, ErrInvalid) true, and finds the cause.
func (e *InvalidError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrInvalid}
	}
	return []error{ErrInvalid, e.Err}
}

func invalid(argument, format string, args ...any) error {
	return &InvalidError{Argument: argument, Problem: fmt.Sprintf(format, args...)}
}

func (q *AcquireRequest) validate() error {
	if err := validateKey(q.Resource, q.Owner); err != nil {
		return err
	}
	if err := validateTTL(q.TTL); err != nil {
		return err
	}
	if err := validatePrincipal(q.Principal); err != nil {
		return err
	}
	if q.Grace < 0 || q.Grace > MaxGrace {
		return invalid("takeover grace", "is %s; it must be from 0 to %s", q.Grace, MaxGrace)
	}
	return ValidateMetadata(q.Metadata)
}

func (c Claim) validate(renewal bool) error {
	if err := validateKey(c.Resource, c.Owner); err != nil {
		return err
	}
	if err := validatePrincipal(c.Principal); err != nil {
		return err
	}
	if c.FencingToken < 0 || c.FencingToken > MaxToken {
		return invalid("fencing token", "%d is out of range", c.FencingToken)
	}
	if renewal {
		return validateTTL(c.TTL)
	}
	return nil
}

func validateKey(name, owner string) error {
	if err := ValidateResource(name); err != nil {
		return err
	}
	return ValidateOwner(owner)
}

func validateTTL(ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL {
		return invalid("TTL", "is %s; it must be from %s to %s", ttl, MinTTL, MaxTTL)
	}
	return nil
}

func (f Force) validate() error {
	if err := ValidateResource(f.Resource); err != nil {
		return err
	}
	if f.FencingToken < 1 || f.FencingToken > MaxToken {
		return invalid("fencing token", "%d is out of range; a force-release names the grant that it ends", f.FencingToken)
	}
	for field, text := range map[string]string{"reason": f.Reason, "actor": f.Actor, "replica": f.Replica} {
		if len(text) > MaxReasonBytes || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return invalid(field, "is longer than %d bytes, not valid UTF-8, or has a NUL", MaxReasonBytes)
		}
	}
	return nil
}

// validate checks a filter. Prefix and After are only compared, so they need not be names; but what a database would
// rewrite must not reach it.
func (f ListFilter) validate() error {
	if f.Limit < 0 || f.Limit > MaxList {
		return invalid("limit", "is %d; it must be from 1 to %d (0 is %d)", f.Limit, MaxList, DefaultList)
	}
	if f.State != "" && f.State != StateHeld && f.State != StateExpired {
		return invalid("state", "is %q; it must be %q or %q", f.State, StateHeld, StateExpired)
	}
	for field, text := range map[string]string{"prefix": f.Prefix, "owner": f.Owner, "after": f.After} {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") || len(text) > MaxOwnerBytes {
			return invalid(field, "is longer than %d bytes, not valid UTF-8, or has a NUL", MaxOwnerBytes)
		}
	}
	return nil
}

// withDefaults fills in what the zero value stands for.
func (f ListFilter) withDefaults() ListFilter {
	if f.State == "" {
		f.State = StateHeld
	}
	if f.Limit == 0 {
		f.Limit = DefaultList
	}
	return f
}

func validatePurge(olderThan time.Duration, limit int) error {
	if olderThan < MinPurgeAge {
		return invalid("purge", "%s is too young; rows must be kept for %s at least", olderThan, MinPurgeAge)
	}
	if limit < 1 || limit > MaxPurge {
		return invalid("purge", "the limit is %d; it must be from 1 to %d", limit, MaxPurge)
	}
	return nil
}
