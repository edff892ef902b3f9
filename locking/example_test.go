package locking_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
	"github.com/cronlatch/cronlatch/migrations"
)

// openExample opens a new SQLite database; any *bun.DB on PostgreSQL or SQLite serves, once migrations.Up ran on it.
func openExample(ctx context.Context) (*bun.DB, func()) {
	dir, err := os.MkdirTemp("", "cronlatch-example-")
	if err != nil {
		panic(err)
	}
	target, err := database.Parse("sqlite:"+filepath.Join(dir, "locks.db"), os.Getenv, dir)
	if err != nil {
		panic(err)
	}
	db, err := database.Open(target, database.Options{})
	if err != nil {
		panic(err)
	}
	if err := migrations.Up(ctx, db.Main); err != nil {
		panic(err)
	}
	return db.Main, func() {
		if err := errors.Join(db.Close(), os.RemoveAll(dir)); err != nil {
			panic(err)
		}
	}
}

func Example() {
	ctx := context.Background()
	db, closeDB := openExample(ctx)
	defer closeDB()
	locker, err := locking.Open(db)
	if err != nil {
		panic(err)
	}
	defer locker.Close()

	lock, err := locker.Acquire(ctx, "report:monthly-2026-05", locking.TTL(30*time.Second))
	if err != nil {
		panic(err)
	}
	fmt.Println("got", lock.Resource())

	_, err = locker.Acquire(ctx, "report:monthly-2026-05")
	fmt.Println("a second one is refused:", errors.Is(err, locking.ErrHeld))

	// Work with lock.Context(): it ends when the lock is lost. Then give the lock back.
	fmt.Println("still ours:", lock.Context().Err() == nil)
	if err := lock.Release(ctx); err != nil {
		panic(err)
	}
	fmt.Println(context.Cause(lock.Context()))
	// Output:
	// got report:monthly-2026-05
	// a second one is refused: true
	// still ours: true
	// locking: released by its holder
}

func ExampleHeldError() {
	ctx := context.Background()
	db, closeDB := openExample(ctx)
	defer closeDB()
	locker, err := locking.Open(db)
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	lock, err := locker.Acquire(ctx, "db/orders", locking.Metadata(map[string]string{"host": "web-1"}))
	if err != nil {
		panic(err)
	}

	_, err = locker.Acquire(ctx, "db/orders")
	if held := new(locking.HeldError); errors.As(err, &held) {
		fmt.Printf("%s is held by %s\n", held.Holder.Resource, held.Holder.Metadata)
	}
	fmt.Println(lock.Release(ctx))
	// Output:
	// db/orders is held by {"host":"web-1"}
	// <nil>
}

// A holder that was paused past its lease does not know that its lock is somebody else's. Only the resource can refuse
// its write, by remembering the highest fencing token that it has seen.
func Example_fencing() {
	ctx := context.Background()
	store := lockingtest.NewMemory(time.Now)
	var resource lockingtest.Register // a storage that checks tokens
	token := func(owner string) int64 {
		res, err := store.Acquire(ctx, []locking.AcquireRequest{{Resource: "file", Owner: owner, TTL: time.Minute}})
		if err != nil || !res[0].Acquired {
			panic(fmt.Sprint(res, err))
		}
		return res[0].Record.FencingToken
	}

	paused := token("A")
	fmt.Println("A writes:", resource.Write(paused, "from A"))
	store.Age("file", 2*time.Minute) // A is paused past its lease
	fmt.Println("B writes:", resource.Write(token("B"), "from B"))
	fmt.Println("A wakes up and writes:", resource.Write(paused, "from A"))
	fmt.Println(resource.Value())
	// Output:
	// A writes: true
	// B writes: true
	// A wakes up and writes: false
	// from B
}

// A lock can be taken in the transaction of what it is taken for: both happen, or neither.
func ExampleNewStore_transaction() {
	ctx := context.Background()
	db, closeDB := openExample(ctx)
	defer closeDB()
	err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		store, err := locking.NewStore(tx)
		if err != nil {
			return err
		}
		res, err := store.Acquire(ctx, []locking.AcquireRequest{{Resource: "a", Owner: "A", TTL: time.Minute}})
		if err != nil {
			return err
		}
		fmt.Println("acquired in the transaction:", res[0].Acquired)
		return errors.New("something else went wrong")
	})
	fmt.Println(err)
	store, err := locking.NewStore(db)
	if err != nil {
		panic(err)
	}
	_, err = store.Get(ctx, "a")
	fmt.Println("afterwards:", errors.Is(err, locking.ErrNotFound))
	// Output:
	// acquired in the transaction: true
	// something else went wrong
	// afterwards: true
}

func ExampleStore_batch() {
	ctx := context.Background()
	db, closeDB := openExample(ctx)
	defer closeDB()
	store, err := locking.NewStore(db)
	if err != nil {
		panic(err)
	}
	owner := locking.NewOwner()
	var reqs []locking.AcquireRequest
	for _, name := range []string{"b", "a", "c"} {
		reqs = append(reqs, locking.AcquireRequest{Resource: name, Owner: owner, TTL: time.Minute})
	}
	results, err := store.Acquire(ctx, reqs) // one statement, answered in the order of the requests
	if err != nil {
		panic(err)
	}
	for _, r := range results {
		fmt.Println(r.Record.Resource, r.Acquired)
	}
	// Output:
	// b true
	// a true
	// c true
}
