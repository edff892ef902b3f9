package httplock

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

const (
	// maxLockAnswer holds the longest lock: 16 KiB of metadata, and an owner and a name of which each byte is escaped.
	maxLockAnswer = 32 << 10
	// maxTextAnswer is for problems.
	maxTextAnswer = 64 << 10
)

// The answers that are not what was asked. They say nothing about the lock.
var (
	errOtherLock = errors.New("the answer is about another lock")
	errNoLock    = errors.New("the answer lacks a part")
)

// body is what a request says; what is zero is left out.
type body struct {
	owner     string
	token     int64
	ttl       time.Duration
	metadata  json.RawMessage
	reason    *string // not nil in a force-release
	immediate bool
}

// encode writes metadata byte for byte: json.Marshal would tidy it.
func (b *body) encode() []byte {
	out := []byte{'{'}
	add := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), name...), '"', ':'), value...)
	}
	if b.owner != "" {
		add("owner", quote(b.owner))
	}
	if b.token != 0 {
		add("fencing_token", strconv.AppendInt(nil, b.token, 10))
	}
	if b.ttl != 0 {
		add("ttl_seconds", strconv.AppendInt(nil, seconds(b.ttl), 10))
	}
	if b.metadata != nil {
		add("metadata", b.metadata)
	}
	if b.reason != nil {
		add("reason", quote(*b.reason))
	}
	if b.immediate {
		add("immediate", []byte("true"))
	}
	return append(out, '}')
}

// quote cannot fail: a string always encodes.
func quote(s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`)
	}
	return q
}

// seconds rounds up: a lock that lives longer than its holder believes is late for others, a shorter one has two holders.
func seconds(ttl time.Duration) int64 { return int64((ttl + time.Second - 1) / time.Second) }

// lockPath is the escaped path of a lock below the base. A slash in a name is %2F.
func lockPath(resource, call string) string { return "/locks/" + url.PathEscape(resource) + call }

// lockAnswer is a lock as a server shows it. Pointers tell what is missing from what is zero.
type lockAnswer struct {
	Resource     *string         `json:"resource"`
	Owner        *string         `json:"owner"`
	FencingToken int64           `json:"fencing_token"`
	AcquiredAt   *time.Time      `json:"acquired_at"`
	ExpiresAt    *time.Time      `json:"expires_at"`
	RemainingMS  *int64          `json:"remaining_ms"`
	Metadata     json.RawMessage `json:"metadata"`
}

// record checks that the answer is a whole lock, of the resource and owner that were asked for when they are not "".
func (a *lockAnswer) record(resource, owner string) (locking.Record, error) {
	switch {
	case a.Resource == nil || a.Owner == nil || a.AcquiredAt == nil || a.ExpiresAt == nil || a.RemainingMS == nil,
		*a.RemainingMS < 0 || *a.RemainingMS > maxRemaining.Milliseconds(),
		a.FencingToken < 1 || a.FencingToken > locking.MaxToken:
		return locking.Record{}, errNoLock
	case resource != "" && *a.Resource != resource, owner != "" && *a.Owner != owner:
		return locking.Record{}, errOtherLock
	}
	return locking.Record{
		Resource: *a.Resource, Owner: *a.Owner, FencingToken: a.FencingToken, Metadata: a.Metadata,
		AcquiredAt: a.AcquiredAt.UTC(), ExpiresAt: a.ExpiresAt.UTC(),
		Now: a.ExpiresAt.UTC().Add(-time.Duration(*a.RemainingMS) * time.Millisecond),
	}, nil
}

// maxRemaining bounds what a server can say about the time to come: the longest TTL and the longest grace.
const maxRemaining = locking.MaxTTL + locking.MaxGrace + time.Second

// acquireAnswer is either a grant or a refusal.
type acquireAnswer struct {
	Acquired   *bool         `json:"acquired"`
	Lock       *lockAnswer   `json:"lock"`
	Resource   *string       `json:"resource"`
	RetryAfter *int64        `json:"retry_after_seconds"`
	Holder     *holderAnswer `json:"holder"`
}

type holderAnswer struct {
	AcquiredAt time.Time       `json:"acquired_at"`
	ExpiresAt  time.Time       `json:"expires_at"`
	Metadata   json.RawMessage `json:"metadata"`
}

func (a *acquireAnswer) result(q *locking.AcquireRequest) (locking.AcquireResult, error) {
	switch {
	case a.Acquired == nil || *a.Acquired && a.Lock == nil:
		return locking.AcquireResult{}, errNoLock
	case *a.Acquired:
		rec, err := a.Lock.record(q.Resource, q.Owner)
		return locking.AcquireResult{Acquired: true, Record: rec}, err
	case a.Resource == nil || *a.Resource != q.Resource:
		return locking.AcquireResult{}, errOtherLock
	}
	return locking.AcquireResult{Record: a.holder()}, nil
}

// holder is the record of a refusal: Remaining is the wait that the server advises.
func (a *acquireAnswer) holder() locking.Record {
	rec := locking.Record{Resource: *a.Resource}
	if a.Holder == nil {
		return rec // it went away in between
	}
	rec.AcquiredAt, rec.ExpiresAt, rec.Metadata = a.Holder.AcquiredAt.UTC(), a.Holder.ExpiresAt.UTC(), a.Holder.Metadata
	wait := time.Second
	if a.RetryAfter != nil {
		wait = time.Duration(min(max(*a.RetryAfter, 1), int64(maxRemaining/time.Second))) * time.Second
	}
	rec.Now = rec.ExpiresAt.Add(-wait)
	return rec
}
