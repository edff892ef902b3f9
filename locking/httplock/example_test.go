package httplock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/httplock"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// report does its work under a lock. It does not know whether the lock is in a database or behind a server.
func report(ctx context.Context, locker *locking.Locker) error {
	lock, err := locker.Acquire(ctx, "report:monthly-2026-05", locking.TTL(30*time.Second))
	if errors.Is(err, locking.ErrHeld) {
		return errors.New("somebody else makes this report")
	}
	if err != nil {
		return err
	}
	// The work: with lock.Context(), which ends when the lock is lost, and lock.FencingToken() for what it writes.
	return lock.Release(ctx)
}

// Only the constructor tells the database from the server: locking.Open(db), or OpenStore with a client.
func Example() {
	ctx := context.Background()
	table := lockingtest.NewMemory(bootClock) // what a database is to locking.Open
	server := httptest.NewServer(httpapi.New(httpapi.Options{Locks: table}))
	defer server.Close()

	direct, err := locking.OpenStore(table) // on a database: locking.Open(db)
	if err != nil {
		panic(err)
	}
	defer direct.Close()

	client, err := httplock.New(httplock.Options{URL: server.URL, Token: ""}) // cl_...: the server's token
	if err != nil {
		panic(err)
	}
	defer client.Close()
	remote, err := locking.OpenStore(client)
	if err != nil {
		panic(err)
	}
	defer remote.Close()

	fmt.Println(report(ctx, direct), report(ctx, remote))

	// Both see the same locks.
	lock, err := direct.Acquire(ctx, "report:monthly-2026-05")
	if err != nil {
		panic(err)
	}
	fmt.Println(report(ctx, remote))
	fmt.Println(lock.Release(ctx), report(ctx, remote))
	// Output:
	// <nil> <nil>
	// somebody else makes this report
	// <nil> <nil>
}
