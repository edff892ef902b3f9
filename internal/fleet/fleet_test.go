package fleet

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
)

// The canaries are secrets that the daemons know and nobody may print.
const (
	passwordCanary = "canary-in-the-password"
	environCanary  = "canary-in-the-environment"
)

// Fleet is one database, one configuration and the replicas that share them.
type Fleet struct {
	tb       testing.TB
	url      string       // for the daemons
	DB       *database.DB // for the test, never through a fault
	Ledger   *jobs.Ledger
	programs programs // links in dir
	dir      string   // configuration, record, registers, logs
	mark     string   // in the environment of every process of this fleet

	settings Settings // as New got them

	mu       sync.Mutex
	replicas []*Replica
}

// New makes a fleet without replicas. The daemons use the database at url, and the test itself too.
func New(tb testing.TB, url string, s Settings) *Fleet {
	tb.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		tb.Skip("this machine has no /proc, by which processes are found and cleaned up")
	}
	f := &Fleet{tb: tb, url: withPassword(url), DB: dbtest.Open(tb, url), settings: s}
	var err error
	f.Ledger, err = jobs.OpenLedger(f.DB.Main)
	f.must(err)
	built := sharedPrograms(tb)
	f.dir, err = os.MkdirTemp(built.dir, "fleet-") //nolint:usetesting // names of subtests are no names for files
	f.must(err)
	f.mark = built.mark + "/" + filepath.Base(f.dir)
	f.programs = programs{daemon: filepath.Join(f.dir, "cronlatch"), recorder: filepath.Join(f.dir, "recorder")}
	f.must(errors.Join(os.Link(built.daemon, f.programs.daemon), os.Link(built.recorder, f.programs.recorder)))
	f.Configure(s)
	tb.Cleanup(f.clean)
	return f
}

// withPassword puts the canary where a password goes; the test server trusts everybody.
func withPassword(url string) string {
	return strings.Replace(url, "://postgres@", "://postgres:"+passwordCanary+"@", 1)
}

// Configure writes the configuration for replicas that are started from now on.
func (f *Fleet) Configure(s Settings) {
	f.tb.Helper()
	f.must(os.WriteFile(f.config(), []byte(s.yaml(f)), 0o600))
}

func (f *Fleet) config() string { return filepath.Join(f.dir, "cronlatch.yaml") }

// command is the program with the fleet's configuration, database and mark.
func (f *Fleet) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), f.programs.daemon, append(args, "--config", f.config())...)
	cmd.Dir = f.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "TMPDIR=" + os.TempDir(), "DATABASE_URL=" + f.url,
		markName + "=" + f.mark, "FLEET_SECRET=" + environCanary, "GORACE=halt_on_error=1",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is the test's
	return cmd
}

// Cronlatch runs a client command and returns its exit code and output.
func (f *Fleet) Cronlatch(args ...string) (code int, output string) {
	f.tb.Helper()
	cmd := f.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		f.must(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (f *Fleet) add(r *Replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = append(f.replicas, r)
}

// Replicas are all that were ever started, in this order.
func (f *Fleet) Replicas() []*Replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*Replica(nil), f.replicas...)
}

func (f *Fleet) must(err error) {
	f.tb.Helper()
	if err != nil {
		f.tb.Fatal(err)
	}
}

// Events are what the jobs have recorded so far.
func (f *Fleet) Events() []record.Event {
	f.tb.Helper()
	events, err := record.Read(filepath.Join(f.dir, "events"))
	f.must(err)
	return events
}

// Runs is the whole ledger.
func (f *Fleet) Runs() []jobs.Run {
	f.tb.Helper()
	runs, err := f.runs()
	f.must(err)
	return runs
}

func (f *Fleet) runs() ([]jobs.Run, error) {
	// Not the test's context: it has ended when a failed test prints its ledger.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return f.Ledger.List(ctx, jobs.RunFilter{Limit: 10_000})
}

func (f *Fleet) family() family { return family{f.dir, f.mark} }

// JobProcesses are the processes of the fleet's jobs that are alive; those of the daemons are left out.
func (f *Fleet) JobProcesses() []int {
	var pids []int
	for _, pid := range f.family().alive() {
		if hasEntry(pid, "FLEET_JOB=yes") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// clean ends everything that belongs to the fleet, and shows what is known when the test has failed.
func (f *Fleet) clean() {
	f.family().kill()
	for _, r := range f.Replicas() {
		<-r.ended
	}
	if f.tb.Failed() {
		f.dump()
	}
}
