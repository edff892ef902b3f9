// Command recorder is the job of the fleet tests: it writes what happens to it into the files that package record
// describes, and does what jobs do that give trouble: run long, ignore SIGTERM, leave a grandchild in a session of its own.
//
//	recorder [-for D] [-until FILE] [-ignore-term] [-grandchild]
//
// It finds the run in CRONLATCH_*, and in FLEET_DIR the folder to write to. Without -for and -until it starts and ends at
// once. A grandchild ignores SIGTERM and lives until somebody kills it, for three minutes at most.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
)

// longest is how long a process that ignores SIGTERM lives if everything that should kill it fails.
const longest = 3 * time.Minute

type options struct {
	life       time.Duration
	until      string
	ignoreTerm bool
	grandchild bool
	role       string
}

func main() {
	var o options
	flag.DurationVar(&o.life, "for", 0, "how long to run")
	flag.StringVar(&o.until, "until", "", "run on until this file is there, too; relative to the record's folder")
	flag.BoolVar(&o.ignoreTerm, "ignore-term", false, "ignore SIGTERM")
	flag.BoolVar(&o.grandchild, "grandchild", false, "start a grandchild in its own session and leave it behind")
	flag.StringVar(&o.role, "role", record.Main, "what to call this process in the record")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		panic(err) // os.Exit belongs to main programs that people use; this ends with 2 as well
	}
}

func run(o options) (err error) {
	e, err := record.FromEnviron(os.Getenv)
	if err != nil {
		return err
	}
	e.Role = o.role
	dir := os.Getenv("FLEET_DIR")
	log, err := record.Open(filepath.Join(dir, "events"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // each line was written or has failed already
	ctx, stop := lifetime(o)
	defer stop()
	if err := log.Write(record.Start, e); err != nil {
		return err
	}
	if _, err := record.Put(dir, e.Resource, record.Write{Token: e.Token, Run: e.Run}); err != nil {
		return err
	}
	if o.grandchild {
		if err := leaveGrandchild(); err != nil {
			return err
		}
	}
	if o.until != "" {
		o.until = filepath.Join(dir, o.until)
	}
	if err := beat(ctx, o, log, e); err != nil {
		return err
	}
	if _, err := record.Put(dir, e.Resource, record.Write{Token: e.Token, Run: e.Run}); err != nil {
		return err
	}
	fmt.Printf("recorder: run %d done\n", e.Run)
	return log.Write(record.Stop, e)
}

// lifetime ends after o.life, when that is all that is waited for, or at SIGTERM.
func lifetime(o options) (context.Context, context.CancelFunc) {
	ctx := context.Background()
	if o.ignoreTerm {
		signal.Ignore(syscall.SIGTERM)
	} else {
		ctx, _ = signal.NotifyContext(ctx, syscall.SIGTERM) // the process ends with it
	}
	if o.until != "" {
		return context.WithTimeout(ctx, longest)
	}
	return context.WithTimeout(ctx, min(o.life, longest))
}

func beat(ctx context.Context, o options, log *record.Log, e record.Event) error {
	begun := boottime.Now()
	if ctx.Err() != nil {
		return nil
	}
	tick := time.NewTicker(record.Beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := log.Write(record.Alive, e); err != nil {
				return err
			}
			if o.until != "" && boottime.Now()-begun >= o.life && exists(o.until) {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// leaveGrandchild starts a process that is in neither our process group nor our session, and does not wait for it.
func leaveGrandchild() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.CommandContext(context.Background(), self, "-role", record.Grandchild, "-ignore-term", "-for", longest.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a grandchild: %w", err)
	}
	return cmd.Process.Release()
}
