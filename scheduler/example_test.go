package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/migrations"
	"github.com/cronlatch/cronlatch/scheduler"
)

// openExample opens a new SQLite database; any *bun.DB on PostgreSQL or SQLite serves, once migrations.Up ran on it.
func openExample(ctx context.Context) (*scheduler.DB, func()) {
	dir, err := os.MkdirTemp("", "cronlatch-example-")
	must(err)
	target, err := database.Parse("sqlite:"+filepath.Join(dir, "jobs.db"), os.Getenv, dir)
	must(err)
	db, err := database.Open(target, database.Options{})
	must(err)
	must(migrations.Up(ctx, db.Main))
	return db.Main, func() { must(errors.Join(db.Close(), os.RemoveAll(dir))) }
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// everySecond is a job without a command: what it runs is the StartFunc's to say.
func everySecond(name string) *jobs.Job {
	schedule, err := jobs.ParseSchedule("* * * * * *", jobs.ScheduleOptions{Seconds: true})
	must(err)
	resource, err := jobs.ParseTemplate(name, jobs.TemplateOptions{})
	must(err)
	return &jobs.Job{
		Name: name, Schedule: schedule, Resource: resource, Enabled: true, Timeout: time.Minute,
		StartDeadline: jobs.DefaultStartDeadline, Overlap: jobs.OverlapSkip, OnLost: jobs.OnLostFail,
		CatchUp: jobs.CatchUp{Policy: jobs.CatchUpLatest, Window: jobs.DefaultCatchUpWindow, Max: jobs.DefaultCatchUpMax},
	}
}

// A program can run functions on a schedule, each occurrence once in all of its replicas. A function gets a context that
// ends when its lock is lost, at the job's timeout and when the program leaves; nothing else can stop it. An error and a
// panic are failed runs, and the program goes on.
func Example() {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	db, closeDB := openExample(ctx)
	defer closeDB()

	funcs := map[string]func(context.Context) error{
		"greet": func(context.Context) error { return nil },
		"panic": func(context.Context) error { panic("out of cheese") },
	}
	store, err := locking.NewStore(db)
	must(err)
	keeper, err := locking.NewKeeper(locking.KeeperConfig{Store: store, TTL: 30 * time.Second})
	must(err)
	s, err := scheduler.New(scheduler.Options{
		DB: db, Keeper: keeper, Jobs: []*jobs.Job{everySecond("greet"), everySecond("panic")},
		Start: func(ctx context.Context, a jobs.Attempt) (scheduler.Process, error) {
			return jobs.StartTask(ctx, &a, nil, func(ctx context.Context, _ *jobs.Task) error { return funcs[a.Job.Name](ctx) })
		},
		Replica: "one", Host: "localhost", PID: os.Getpid(), Nonce: "one", Version: "1",
		Capacity: 4, TTL: 30 * time.Second, DrainTimeout: time.Second,
	})
	must(err)

	keeping, stopKeeping := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = keeper.Run(keeping) })
	wg.Go(func() {
		defer stopKeeping()
		if err := s.Run(ctx); err != nil { // the database did not answer in time: the other replicas see that this one is gone
			log.Println("leaving:", err)
		}
	})

	for _, name := range []string{"greet", "panic"} {
		run := firstRun(ctx, db, name)
		fmt.Println(run.Job, run.Outcome)
	}
	leave()
	wg.Wait()
	stopKeeping()
	// Output:
	// greet succeeded
	// panic failed
}

// firstRun waits for the end of the first run of a job. While that works, later ones may end before it: they are skipped.
func firstRun(ctx context.Context, db *scheduler.DB, name string) jobs.Run {
	ledger, err := jobs.OpenLedger(db)
	must(err)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		runs, err := ledger.List(ctx, jobs.RunFilter{Job: name, Limit: 1000})
		must(err)
		if n := len(runs); n > 0 && runs[n-1].State == jobs.StateFinished { // the newest comes first
			return runs[n-1]
		}
	}
	return jobs.Run{}
}
