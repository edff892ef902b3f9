package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/httplock"
)

// Pauses of the polling for a busy lock.
const (
	firstPoll = 50 * time.Millisecond
	slowPoll  = time.Second
)

// lockSeek gets the lock, waiting for it if it may.
type lockSeek struct {
	lockRun

	signals  *lockSignals
	locker   *locking.Locker
	where    string
	say      func(format string, args ...any)
	patience time.Duration
	onExtend func(stopAt, deadline time.Duration)

	bell    lockBell
	reached time.Time // when the database or server answered last; at first, the command's start
	waiting bool      // it was said
}

// acquire asks with one owner all along: when an answer was lost, the next call gets the same grant.
func (s *lockSeek) acquire(ctx context.Context) (*locking.Lock, error) {
	until := s.reached.Add(s.wait)
	for pause := firstPoll; ; pause = min(pause+pause/2, slowPoll) {
		lock, err := s.ask(ctx)
		held, busy := errors.AsType[*locking.HeldError](err)
		switch {
		case err == nil:
			return lock, nil
		case ctx.Err() != nil || s.signals.over.Err() != nil:
			s.giveBack(ctx)
			return nil, s.interrupted()
		case busy && time.Until(until) <= 0:
			return nil, s.busy(&held.Holder)
		case busy:
			s.reached = time.Now()
			s.announce(&held.Holder)
			if s.bell.hang(ctx, s.resource, time.Until(until)) {
				continue // what was released before anybody listened is found now
			}
		case errors.Is(err, locking.ErrInvalid):
			return nil, err
		case errors.Is(err, httplock.ErrDenied):
			return nil, denied(s.where, err)
		case database.Denied(err):
			return nil, classify(err)
		case time.Since(s.reached) >= s.patience:
			s.giveBack(ctx)
			return nil, unreachable(s.where, err)
		}
		var next time.Duration
		if busy {
			next = nextPoll(pause, held.Holder.Remaining(), time.Until(until))
		} else {
			next = firstPoll
		}
		select {
		case <-time.After(next):
		case _, open := <-s.bell.rings():
			s.bell.heard(open)
			pause = firstPoll // others were woken, too
		case <-s.signals.over.Done():
			return nil, s.interrupted()
		case <-ctx.Done():
			return nil, s.interrupted()
		}
	}
}

func (s *lockSeek) ask(ctx context.Context) (*locking.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, max(time.Until(s.reached.Add(s.patience)), firstPoll))
	defer cancel()
	stop := s.signals.whenOver(cancel)
	defer stop()
	return s.locker.Acquire(ctx, s.resource, locking.TTL(s.ttl), locking.Owner(s.owner), locking.Metadata(s.metadata),
		locking.StopGrace(s.killAfter), locking.OnExtend(s.onExtend))
}

// nextPoll spreads the waiters, and is there when the holder's time is over, or ours.
func nextPoll(pause, remaining, left time.Duration) time.Duration {
	pause = pause/2 + rand.N(pause/2+1)
	if remaining > 0 && remaining < pause {
		pause = remaining + rand.N(firstPoll/2)
	}
	return max(min(pause, left), time.Millisecond)
}

// giveBack releases what an unanswered acquire may have granted; else it ends at its expiry.
func (s *lockSeek) giveBack(ctx context.Context) {
	if s.named {
		return // others may hold it by that name
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = s.locker.Release(ctx, locking.Claim{Resource: s.resource, Owner: s.owner})
}

func (s *lockSeek) interrupted() error {
	return fail(s.signals.code(), "interrupted before the lock %q was free; nothing was started", s.resource)
}

// announce says once whom the command waits for.
func (s *lockSeek) announce(holder *locking.Record) {
	if !s.waiting {
		s.waiting = true
		s.say("waiting up to %s for the lock %q, which is busy: %s", durationText(s.wait), s.resource, holding(holder))
	}
}

func (s *lockSeek) busy(holder *locking.Record) error {
	f := fail(exitBusy, "the lock %q is busy: %s", s.resource, holding(holder))
	if s.wait == 0 {
		return f.withHint("--wait 5m waits for it; `cronlatch locks show %s` shows who has it", word(s.resource))
	}
	return f.withHint("waited %s; `cronlatch locks show %s` shows who has it", durationText(s.wait), word(s.resource))
}

// holding is who has a lock, since when and until when, as far as it is known.
func holding(r *locking.Record) string {
	if r.ExpiresAt.IsZero() {
		return "its holder has just gone"
	}
	return fmt.Sprintf("held by %s since %s, until %s (%s) unless it is renewed",
		holderName(r), stamp(r.AcquiredAt), stamp(r.ExpiresAt), relative(r.Remaining()))
}
