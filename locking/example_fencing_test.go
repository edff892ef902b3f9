package locking_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/locking"
)

// errStale is what a resource answers to a holder whose lock is somebody else's by now.
var errStale = errors.New("a newer holder has written")

// writeRow changes a row only when no newer holder has: the comparison and the change are one statement, so that nothing
// comes between them. The same statement works on PostgreSQL and on SQLite.
func writeRow(ctx context.Context, db bun.IDB, token int64, body string) error {
	res, err := db.ExecContext(ctx, `INSERT INTO reports (name, fencing_token, body) VALUES ('2026-05', ?0, ?1)
		ON CONFLICT (name) DO UPDATE SET fencing_token = excluded.fencing_token, body = excluded.body
		WHERE reports.fencing_token <= excluded.fencing_token`, token, body)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return errStale
}

// A table refuses a holder that was paused while its lock was given to somebody else: each row remembers the token of
// its last writer, and a lower one changes nothing.
func Example_fencingSQL() {
	ctx := context.Background()
	db, closeDB := openExample(ctx)
	defer closeDB()
	if _, err := db.ExecContext(ctx, `CREATE TABLE reports (name TEXT PRIMARY KEY, fencing_token BIGINT NOT NULL, body TEXT NOT NULL)`); err != nil {
		panic(err)
	}
	locks := takeTwice(ctx, db, "report:2026-05")

	fmt.Println("A writes:", writeRow(ctx, db, locks.paused, "draft of A"))
	fmt.Println("B writes:", writeRow(ctx, db, locks.current, "report of B"))
	fmt.Println("A wakes up and writes:", writeRow(ctx, db, locks.paused, "report of A"))
	fmt.Println("B writes again:", writeRow(ctx, db, locks.current, "final report of B"))
	var body string
	if err := db.QueryRowContext(ctx, `SELECT body FROM reports`).Scan(&body); err != nil {
		panic(err)
	}
	fmt.Println("the table has:", body)
	// Output:
	// A writes: <nil>
	// B writes: <nil>
	// A wakes up and writes: a newer holder has written
	// B writes again: <nil>
	// the table has: final report of B
}

// writeFile replaces a file only when no newer holder has. The file beside it keeps the highest token, and flock makes the
// comparison and the change one step for all processes of the machine. The token is on disk before the content: a crash
// between them refuses too much, never too little.
func writeFile(path string, token int64, content string) (err error) {
	guard, err := os.OpenFile(path+".token", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard.Close()) }() // which ends the flock
	if err := syscall.Flock(int(guard.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	text, err := io.ReadAll(guard)
	if err != nil {
		return err
	}
	if len(text) > 0 {
		last, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return err
		}
		if token < last {
			return errStale
		}
	}
	// Twenty digits, so that a longer number is never half overwritten.
	if _, err := guard.WriteAt(fmt.Appendf(nil, "%020d\n", token), 0); err != nil {
		return err
	}
	if err := guard.Sync(); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// A file refuses a holder that was paused while its lock was given to somebody else.
func Example_fencingFile() {
	ctx := context.Background()
	db, closeDB := openExample(ctx)
	defer closeDB()
	locks := takeTwice(ctx, db, "file:summary.txt")
	dir, err := os.MkdirTemp("", "cronlatch-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system cleans its temporary folder as well
	path := filepath.Join(dir, "summary.txt")

	fmt.Println("A writes:", writeFile(path, locks.paused, "draft of A"))
	fmt.Println("B writes:", writeFile(path, locks.current, "summary of B"))
	fmt.Println("A wakes up and writes:", writeFile(path, locks.paused, "summary of A"))
	content, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	fmt.Println("the file has:", string(content))
	// Output:
	// A writes: <nil>
	// B writes: <nil>
	// A wakes up and writes: a newer holder has written
	// the file has: summary of B
}

// tokens are those of two holders, of whom the first does not know that it is over.
type tokens struct{ paused, current int64 }

// takeTwice lets A take a lock and B take it after A has lost it. A is not told, as if it had been paused.
func takeTwice(ctx context.Context, db bun.IDB, resource string) (t tokens) {
	store, err := locking.NewStore(db)
	if err != nil {
		panic(err)
	}
	take := func(owner string) int64 {
		res, err := store.Acquire(ctx, []locking.AcquireRequest{{Resource: resource, Owner: owner, TTL: time.Minute}})
		if err != nil || !res[0].Acquired {
			panic(fmt.Sprint(res, err))
		}
		return res[0].Record.FencingToken
	}
	t.paused = take("A")
	// An administrator is sure that A is dead. Its lease would end the same way.
	force := locking.Force{Resource: resource, FencingToken: t.paused, Reason: "A does not answer", Actor: "ann", Immediate: true}
	if _, err := store.ForceRelease(ctx, force); err != nil {
		panic(err)
	}
	t.current = take("B")
	return t
}
