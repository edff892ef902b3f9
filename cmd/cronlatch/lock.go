package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/locking"
)

const lockHelp = `lock runs a command while it holds the lock of RESOURCE, and releases the lock when the command and everything that it
started have ended. The command is executed as it is, without a shell, with the caller's stdin, stdout, stderr, other
open files and environment; in a process group of its own, to which SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2
and SIGWINCH are passed on. A second SIGTERM or SIGINT kills. Processes that the command leaves behind get SIGTERM
when it has ended, and SIGKILL after --kill-after. A command that holds a lock cannot be suspended with Ctrl-Z.

It finds the lock's name in CRONLATCH_LOCK, the fencing token in CRONLATCH_FENCING_TOKEN, and in CRONLATCH_LOCK_EXPIRES
when the lock would have ended without a renewal. DATABASE_URL and CRONLATCH_TOKEN stay in its environment: they are
the caller's own, and who may run the command can read them anyhow.

The lock is renewed every third of the TTL. When that fails, the command gets SIGTERM in time to be dead by SIGKILL
before anybody else can get the lock, also when cronlatch itself was killed or frozen; the exit code is then 76. What
becomes another user (sudo) can only be stopped by root or where cgroups can be written.

Without --wait a busy lock is exit code 75 at once. Otherwise the exit code is the command's own, 128+n when signal n
ended it; "cronlatch help exit-codes" has all of them.`

// lockFlags are the flags of lock.
type lockFlags struct {
	ttl, wait, killAfter time.Duration
	noWait               bool
	owner, metadata      string
	server               string
}

func (a *app) lockCommand() *cobra.Command {
	f := lockFlags{ttl: locking.DefaultTTL, killAfter: 10 * time.Second}
	cmd := &cobra.Command{
		Use:   "lock RESOURCE [flags] -- COMMAND [ARGS...]",
		Short: "Run a command while holding a lock",
		Long:  lockHelp,
		Example: "  $ cronlatch lock deploy -- ./deploy.sh production\n" +
			"  $ cronlatch lock db/orders --wait 5m -- psql -f migrate.sql\n" +
			"  $ cronlatch lock nightly -- sh -c './dump | gzip > dump.gz'",
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.lockRun(cmd, args, f)
			if err != nil {
				return err
			}
			return a.lock(cmd.Context(), r)
		},
	}
	flags := cmd.Flags()
	flags.Var(lockSpan{&f.ttl}, "ttl", "life of the lock without a renewal; also how long others wait after a crash")
	flags.Var(lockSpan{&f.wait}, "wait", "how long to wait for a busy lock")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait (the default)")
	flags.Var(lockSpan{&f.killAfter}, "kill-after", "between SIGTERM and SIGKILL, as far as the lock's deadline leaves it")
	flags.StringVar(&f.owner, "owner", "", "name of the holder (default random); two commands with one owner do not exclude each other")
	flags.StringVar(&f.metadata, "metadata", "", "JSON object that others see (default: command, host, pid and user)")
	addServer(cmd, &f.server)
	return cmd
}

// addServer gives a command that works on locks its --server.
func addServer(cmd *cobra.Command, server *string) {
	cmd.Flags().StringVar(server, "server", "", "ask this daemon (CRONLATCH_SERVER) and not the database")
}

// lockSpan is a flag that takes a duration, with d and w.
type lockSpan struct{ d *time.Duration }

func (s lockSpan) String() string {
	if s.d == nil || *s.d == 0 {
		return ""
	}
	return durationText(*s.d)
}

// Type is what the help shows.
func (lockSpan) Type() string { return "duration" }

func (s lockSpan) Set(text string) error {
	d, err := configs.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration like 90s, 5m or 1d", text)
	}
	*s.d = d
	return nil
}

// lockRun is a checked command line of lock.
type lockRun struct {
	lockFlags

	resource string
	named    bool // the owner is not a random one
	argv     []string
	metadata json.RawMessage
}

func (a *app) lockRun(cmd *cobra.Command, args []string, f lockFlags) (lockRun, error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return lockRun{}, usage("lock needs the name of a resource").withHint("cronlatch lock deploy -- ./deploy.sh")
	case dash < 0 && len(args) == 1, dash == len(args):
		return lockRun{}, usage("lock needs a command to run").withHint("cronlatch lock %s -- COMMAND", word(args[0]))
	case dash != 1:
		return lockRun{}, usage("lock takes one resource; `--` goes between it and the command").
			withHint("cronlatch lock %s -- COMMAND", word(args[0]))
	case f.noWait && cmd.Flags().Changed("wait"):
		return lockRun{}, usage("--wait and --no-wait contradict each other")
	}
	r := lockRun{lockFlags: f, resource: args[0], argv: args[1:]}
	if err := r.check(); err != nil {
		return lockRun{}, err
	}
	return r, nil
}

// check refuses what the store would refuse, before anything is asked.
func (r *lockRun) check() error {
	if err := locking.ValidateResource(r.resource); err != nil {
		return invalidLock(err)
	}
	if err := locking.NewLease(locking.LeaseConfig{TTL: r.ttl}).Validate(); err != nil {
		return invalidLock(err)
	}
	if r.named = r.owner != ""; !r.named {
		r.owner = locking.NewOwner()
	} else if err := locking.ValidateOwner(r.owner); err != nil {
		return invalidLock(err)
	}
	if r.lockFlags.metadata == "" {
		r.metadata = lockMetadata(r.argv)
		return nil
	}
	r.metadata = json.RawMessage(r.lockFlags.metadata)
	var object map[string]json.RawMessage
	if err := json.Unmarshal(r.metadata, &object); err != nil || object == nil {
		return usage("--metadata must be a JSON object like {\"ticket\": 4711}")
	}
	if err := locking.ValidateMetadata(r.metadata); err != nil {
		return invalidLock(err)
	}
	return nil
}

// invalidLock makes a mistake in the command line of what the package refuses.
func invalidLock(err error) *failure {
	if invalid, ok := errors.AsType[*locking.InvalidError](err); ok {
		return usage("%s: %s", invalid.Argument, invalid.Problem)
	}
	return usage("%w", err)
}

// lockMetadata is what others see of a holder. Arguments may hold secrets; the name of the command does not.
func lockMetadata(argv []string) json.RawMessage {
	who := requester()
	at := strings.LastIndexByte(who, '@') // the name of an account may have one, too
	text, err := json.Marshal(map[string]any{
		"command": strings.ToValidUTF8(filepath.Base(argv[0]), "?"), "host": who[at+1:], "pid": os.Getpid(), "user": who[:at],
	})
	if err != nil {
		return nil // strings and a number always encode
	}
	return text
}

// lock runs the command under the lock.
func (a *app) lock(ctx context.Context, r lockRun) error {
	signals := catchSignals()
	defer signals.stop()
	began := time.Now()
	return a.withLocks(ctx, r.server, func(_ context.Context, b lockBackend) error {
		return settledLock(a.lockOn(ctx, b, lockSeek{lockRun: r, signals: signals, reached: began}))
	})
}

func (a *app) lockOn(ctx context.Context, b lockBackend, s lockSeek) error {
	trouble := newLockTrouble(a.say)
	b.options = append(b.options, locking.WithLogger(zap.New(trouble)))
	locker, err := locking.OpenStore(b.store, b.options...) //nolint:contextcheck // it lives until Close
	if err != nil {
		return err
	}
	defer locker.Close()
	s.locker, s.where, s.say, s.patience, s.bell.db = locker, b.where, a.say, a.Patience, b.db
	child := &lockChild{app: a, run: s.lockRun, signals: s.signals}
	s.onExtend = func(stopAt, deadline time.Duration) {
		trouble.over()
		child.extend(stopAt, deadline)
	}
	lock, err := s.acquire(ctx)
	s.bell.close()
	if err != nil {
		return err
	}
	child.lock = lock
	return child.execute() //nolint:contextcheck // a command that runs lives in its lock's context, and gets signals itself
}

// settledLock gives errors of locks their meaning.
func settledLock(err error) error {
	if _, ok := errors.AsType[*failure](err); ok || err == nil {
		return err
	}
	if errors.Is(err, locking.ErrInvalid) {
		return invalidLock(err)
	}
	return settled(err)
}
