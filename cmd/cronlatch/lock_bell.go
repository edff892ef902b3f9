package main

import (
	"context"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/locking"
)

// lockBell rings when the lock that is waited for is released: a hint that saves waiting for the next poll. Where there is
// none (SQLite, a pooler, a server, a database in trouble), and when it is torn off, polling goes on as it is.
type lockBell struct {
	db       *database.DB // nil: none
	listener *database.Listener
	tried    bool
	torn     bool
}

// hang begins to listen, once. It returns true when it did: a release may have come before. What fails for a moment
// is tried again the next time.
func (b *lockBell) hang(ctx context.Context, resource string, wait time.Duration) bool {
	if b.db == nil || b.tried {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var err error
	if b.listener == nil {
		b.listener, err = b.db.Listen(ctx, locking.WakeChannel(resource))
	}
	if err == nil {
		err = locking.AnnounceWaiter(ctx, b.db.Main, resource, wait)
	}
	b.tried = !passing(err)
	return err == nil
}

// rings is nil, which never rings, where there is no bell.
func (b *lockBell) rings() <-chan struct{} {
	if b.listener == nil || b.torn {
		return nil
	}
	return b.listener.C
}

// heard says whether it rang; a bell that was torn off is not looked at again.
func (b *lockBell) heard(open bool) {
	b.torn = b.torn || !open
}

func (b *lockBell) close() {
	if b.listener != nil {
		b.listener.Close()
	}
}
