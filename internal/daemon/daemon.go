package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/failpoint"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/metrics"
	"github.com/cronlatch/cronlatch/internal/supervisor"
	"github.com/cronlatch/cronlatch/internal/tracing"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/migrations"
	"github.com/cronlatch/cronlatch/scheduler"
)

// Options are everything a daemon needs. All fields are required unless said otherwise.
type Options struct {
	Config  *configs.Config // with flags and environment already applied
	Target  database.Target
	Replica string // this replica's name, for people; two daemons may share one by mistake
	Version string
	// Executable is what the supervisor is started as; empty is the running binary.
	Executable string
	Dir        string // the jobs' working directory: that of the configuration file
	Getenv     func(string) string
	Log        *zap.Logger
	Audit      *zap.Logger
	// Started is called once, when the first tick can begin: with the listener's URL (http://127.0.0.1:8420, https://...,
	// unix:/path) and what is weaker on this platform than the guarantees say. Optional.
	Started func(url string, weaknesses []string)
	// Login is called once before Started, unless the configuration says who may log in. Optional.
	Login func(Login)
	// Reload reads the configuration again, with the same flags and environment as Config. nil: it is never read again.
	Reload func() (*configs.Config, error)
	// Watch reloads when the file at Config.Path changes; it needs Reload.
	Watch bool
}

// Daemon is one replica.
type Daemon struct {
	o       Options
	hurry   chan struct{}
	hurried sync.Once
	state   atomic.Value                        // string: why the replica is not ready; empty when it is
	working atomic.Pointer[scheduler.Scheduler] // nil until there is one; a probe must not wait for a reload

	reloading sync.Mutex           // guards what follows
	config    *configs.Config      // whose jobs are the known ones
	sched     *scheduler.Scheduler // nil until there is one
	includes  []string             // what the configuration includes that was read last
	metrics   *metrics.Metrics     // made by Run
	tracer    *tracing.Tracer      // nil makes no traces
	complaint string               // about the last file that was rejected; empty when the last one was good
}

const stateDraining = "draining"

// New returns a daemon that is not running yet. The error is an *ExposedError when it may not listen where it should.
func New(o Options) (*Daemon, error) {
	if o.Config == nil || o.Log == nil || o.Audit == nil || o.Getenv == nil {
		return nil, errors.New("daemon: Config, Getenv, Log and Audit are required")
	}
	if err := checkExposure(o.Config); err != nil {
		return nil, err
	}
	d := &Daemon{o: o, hurry: make(chan struct{}), config: o.Config}
	d.state.Store("starting")
	return d, nil
}

// Hurry ends a drain early: running commands are stopped now.
func (d *Daemon) Hurry() { d.hurried.Do(func() { close(d.hurry) }) }

// Run is the replica's life. It returns nil after a clean end of ctx.
func (d *Daemon) Run(ctx context.Context) (err error) {
	db, err := database.Open(d.o.Target, d.databaseOptions())
	if err != nil {
		return err
	}
	defer closing(&err, "the database", db.Close)

	if err := d.watched(db); err != nil { //nolint:contextcheck // the exporter of traces lives longer than any call
		return err
	}
	defer d.tracer.Close() //nolint:contextcheck // it has a second of its own
	handler, err := d.handler(db)
	if err != nil {
		return err
	}
	front, err := listen(ctx, d.o.Config, d.o.Log)
	if err != nil {
		return err
	}
	// Whatever ends the work ends the listener, and the other way round.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	var background sync.WaitGroup
	defer background.Wait()
	defer end(nil)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	background.Go(func() {
		if serr := httpapi.Serve(life, front, handler); serr != nil {
			stop(fmt.Errorf("serving HTTP: %w", serr))
		}
	})
	if d.o.Watch && d.o.Reload != nil {
		background.Go(func() {
			watch(life, d.o.Config.Path, d.o.Log, func() []string {
				_, _ = d.Reload(byFile) // which says what is wrong
				return d.included()
			})
		})
	}
	if err := d.prepare(ctx, db); err != nil {
		return d.cause(ctx, err)
	}
	return d.cause(ctx, d.work(ctx, db, front.url))
}

// cause is err, or what ended ctx when that was not the caller.
func (d *Daemon) cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil && !errors.Is(c, context.Canceled) {
		return errors.Join(c, err)
	}
	if errors.Is(err, context.Canceled) {
		return nil // asked to leave before there was anything to do
	}
	return err
}

// databaseOptions bound what a replica that freezes in the middle of a transaction does to the others: the server ends
// the session after the statement timeout, and with it the row locks, so that is not longer than a TTL.
func (d *Daemon) databaseOptions() database.Options {
	ttl := d.o.Config.Lock.TTL
	return database.Options{
		AppName: "cronlatch/" + d.o.Replica, Logger: d.o.Log, RenewTimeout: min(3*time.Second, ttl/10),
		StatementTimeout: max(2*time.Second, min(ttl, 10*time.Second)),
	}
}

// prepare waits for the database, brings its schema up, and makes the admin token.
func (d *Daemon) prepare(ctx context.Context, db *database.DB) error {
	for {
		if err := db.Wait(ctx, d.o.Log); err != nil {
			return err
		}
		err := migrations.Up(ctx, db.Main)
		if err == nil {
			err = d.login(ctx, db)
		}
		if err == nil || !database.Unavailable(err) {
			return err
		}
		d.o.Log.Warn("the database went away while it was prepared", zap.Error(err))
	}
}

// work runs the replica on a database that is ready.
func (d *Daemon) work(ctx context.Context, db *database.DB, url string) (err error) {
	d.warnOfRoot(os.Geteuid())
	sup, err := supervisor.Start(supervisor.Options{Executable: d.o.Executable, Logger: d.o.Log, Name: d.o.Replica})
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	defer closing(&err, "the supervisor", sup.Close)

	store, err := locking.NewStore(db.Renew)
	if err != nil {
		return err
	}
	var sched *scheduler.Scheduler
	keeper, err := locking.NewKeeper(locking.KeeperConfig{
		Store: d.metrics.Store(&sameFile{Store: store, check: db.CheckFile}), Observe: d.metrics.Lock, TTL: d.o.Config.Lock.TTL, Logger: d.o.Log, Audit: d.o.Audit,
		Fields:      []zap.Field{audit.Actor(audit.ActorReplica, d.o.Replica), audit.Replica(d.o.Replica)},
		OnClockStep: func(step time.Duration) { sched.ClockStepped(step) },
	})
	if err != nil {
		return err
	}
	d.metrics.Keeper(keeper)
	options := d.schedulerOptions(db, keeper, sup)
	pinger, sender, err := d.messengers(db, &options)
	if err != nil {
		return err
	}
	if sched, err = d.attach(options); err != nil {
		return err
	}
	purger, err := d.purger(store, db)
	if err != nil {
		return err
	}
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stopKeeping() // after the scheduler: locks are renewed until the last run has ended
	wg.Go(func() { _ = keeper.Run(keeping) })
	wg.Go(func() { purger.run(keeping) })
	wg.Go(func() { pinger.Run(keeping) })
	wg.Go(func() { sender.Run(keeping) })
	wg.Go(func() {
		select {
		case <-d.hurry:
			sched.Hurry()
		case <-keeping.Done():
		}
	})
	d.state.Store("")
	context.AfterFunc(ctx, func() { d.state.Store(stateDraining) }) // last: ctx may be over already
	if d.o.Started != nil {
		d.o.Started(url, sup.Weaknesses())
	}
	return sched.Run(ctx)
}

func (d *Daemon) schedulerOptions(db *database.DB, keeper *locking.Keeper, sup *supervisor.Client) scheduler.Options {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	c := d.o.Config
	return scheduler.Options{
		DB: db.Main, Keeper: keeper, Start: d.starter(sup),
		Replica: d.o.Replica, Host: host, PID: os.Getpid(), Nonce: nonce(), Version: d.o.Version, Labels: c.Labels,
		Capacity: c.Capacity, TTL: c.Lock.TTL, Grace: c.Lock.TakeoverGrace, DrainTimeout: c.DrainTimeout,
		Observe: d.observers(), Timed: d.metrics.Timed,
		Check: db.CheckFile, Log: d.o.Log, Audit: d.o.Audit, Boot: boottime.Now, Wall: func() time.Time { return time.Now().Add(failpoint.WallOffset()) },
	}
}

// observers hear what becomes of runs here, whether the loop or somebody who asked the API has ended them.
func (d *Daemon) observers() []scheduler.Observer { return []scheduler.Observer{d.metrics, d.tracer} }

// nonce tells this process from every other one, whatever they are called.
func nonce() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return hex.EncodeToString(b)
}

func (d *Daemon) ready(db *database.DB) func(context.Context) error {
	return func(ctx context.Context) error {
		if why, _ := d.state.Load().(string); why != "" {
			return &httpapi.NotReadyError{Code: why, Reason: "this replica is " + why}
		}
		if d.drained() {
			return &httpapi.NotReadyError{Code: stateDraining, Reason: "this replica was asked to take no more runs"}
		}
		if err := db.CheckFile(ctx); err != nil {
			return &httpapi.NotReadyError{Code: "database", Reason: "the database file is not the one that was opened", Err: err}
		}
		if err := migrations.Check(ctx, db.Main); err != nil {
			return &httpapi.NotReadyError{Code: "database", Reason: "the database does not answer or its schema is not right", Err: err}
		}
		return nil
	}
}

func closing(err *error, what string, f func() error) {
	if cerr := f(); cerr != nil {
		*err = errors.Join(*err, fmt.Errorf("closing %s: %w", what, cerr))
	}
}

var _ scheduler.Process = (*process)(nil)

// process is a supervised process as the scheduler wants it.
type process struct{ *supervisor.Process }

// Output is what the command has printed from a byte on.
func (p *process) Output(ctx context.Context, since int64) (jobs.Chunk, error) {
	c, err := p.Process.Output(ctx, since)
	return jobs.Chunk(c), err
}

func (p *process) Result() jobs.Result {
	r := p.Process.Result()
	return jobs.Result{
		Cause: jobs.Cause(r.Cause), ExitCode: r.ExitCode, Signal: r.Signal,
		Output: jobs.Output{Head: r.Output.Head, Tail: r.Output.Tail, Total: r.Output.Total},
	}
}
