package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// startSQL runs the transaction of an attempt.
func (e *Executor) startSQL(ctx context.Context, a jobs.Attempt) (scheduler.Process, error) {
	statements, err := a.SQLStatements()
	if err == nil {
		var target database.Target
		if target, err = e.target(a.Job.SQL); err == nil {
			x := &transaction{e: e, a: &a, target: target, statements: statements}
			return e.start(ctx, &a, x.run)
		}
	}
	return nil, &jobs.StartError{ExitCode: 126, Message: err.Error()}
}

// target is the database of a job. Its errors do not repeat a password. Of the environment it takes what says who we are:
// PGPASSWORD and its kin are for the daemon's own database, and another server must not be sent them.
func (e *Executor) target(s *jobs.SQL) (database.Target, error) {
	if s.Database == jobs.OwnDatabase {
		return e.o.Own, nil
	}
	t, err := database.Parse(s.URL, e.identity, e.o.Dir)
	if err != nil {
		return database.Target{}, fmt.Errorf("reading the URL of the database %q: %w", s.Database, err)
	}
	return t, nil
}

func (e *Executor) identity(name string) string {
	if e.o.Getenv == nil || name != "HOME" && name != "USER" {
		return ""
	}
	return e.o.Getenv(name)
}

// transaction is one run.
type transaction struct {
	e          *Executor
	a          *jobs.Attempt
	target     database.Target
	statements []string
}

// A transaction of the run's own takes one connection, made for it and closed with it: a job that is due once an hour
// keeps nothing open, follows a database that moved, and cannot take the daemon's connections away.
const (
	controlTimeout = 5 * time.Second // of what is not the job's: connecting, BEGIN, the look at the lock, COMMIT
	// sqliteShare is the part of a TTL that a transaction may take on the SQLite file of the locks. There is one writer at
	// a time: nothing is renewed, claimed or finished meanwhile, and a renewal that is missed once is no harm.
	sqliteShare = 4
)

func (x *transaction) run(ctx context.Context, t *jobs.Task) (err error) {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	db, err := database.Open(x.target, database.Options{
		AppName: "cronlatch/" + x.e.o.Replica, MaxConns: 1, RenewConns: 1, StatementTimeout: controlTimeout,
	})
	if err != nil {
		return &jobs.WorkError{Reason: jobs.ReasonStart, Err: err}
	}
	defer func() {
		if cerr := db.Close(); cerr != nil && err == nil {
			_, _ = fmt.Fprintf(t, "closing the connection: %v\n", cerr)
		}
	}()
	if err := x.execute(ctx, db, t); err != nil {
		return x.failure(ctx, err)
	}
	return nil
}

// limited bounds a transaction that holds up everybody else.
func (x *transaction) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if x.own() && x.target.Kind == database.SQLite {
		return context.WithTimeoutCause(ctx, x.e.o.TTL/sqliteShare, errTooLong)
	}
	return context.WithCancel(ctx)
}

var errTooLong = errors.New("a transaction on the SQLite file of the locks may take a quarter of lock.ttl: no lock can be renewed meanwhile")

func (x *transaction) own() bool { return x.a.Job.SQL.Database == jobs.OwnDatabase }

// failure is err with the reason for the ledger: who never reached the database did not start.
func (x *transaction) failure(ctx context.Context, err error) error {
	reason := jobs.ReasonSQL
	var begin *beginError
	if errors.As(err, &begin) {
		reason = jobs.ReasonStart
	}
	if errors.Is(context.Cause(ctx), errTooLong) {
		err = errors.Join(errTooLong, err)
	}
	return &jobs.WorkError{Reason: reason, Err: err}
}

// beginError is a transaction that did not come about.
type beginError struct{ err error }

func (e *beginError) Error() string { return "beginning the transaction: " + e.err.Error() }

func (e *beginError) Unwrap() error { return e.err }

// statementError says which statement failed. The text of the statement is not repeated: it may hold what nobody should
// see.
type statementError struct {
	number int
	word   string // its first word
	err    error
}

func (e *statementError) Error() string {
	text := fmt.Sprintf("statement %d (%s): %v", e.number, e.word, e.err)
	if database.SQLState(e.err) == stateCancelled {
		text += "; a statement may take as long as the lock lives without renewal: raise lock.ttl, or run a client with command"
	}
	return text
}

func (e *statementError) Unwrap() error { return e.err }

// stateCancelled is PostgreSQL's query_canceled: statement_timeout.
const stateCancelled = "57014"

// firstWord is what a statement does, for people.
func firstWord(statement string) string {
	for line := range strings.SplitSeq(statement, "\n") {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "--") && !strings.HasPrefix(fields[0], "/*") {
			return strings.ToUpper(fields[0])
		}
	}
	return "?"
}
