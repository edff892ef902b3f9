package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/demo"
	"github.com/cronlatch/cronlatch/internal/output"
)

// demoRestart is long enough to look at what is different without the replica.
const demoRestart = 10 * time.Second

func (a *app) demoCommand() *cobra.Command {
	o := demo.Options{ListenBase: 8420, Seed: 1, Restart: demoRestart}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show three replicas at work on one SQLite file, with a month of history",
		Long: "demo starts the replicas a, b and c as processes of their own, on a database with 30 days of made-up history, and\n" +
			"tells what they decide. `cronlatch demo kill`, in another terminal, kills the one that holds a lock: watch another\n" +
			"one take over, and the fencing token grow. Nothing outside the demo's folder is touched, and nothing is left behind.",
		Example: "  $ cronlatch demo\n  $ cronlatch demo kill b",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			const most = 65_533
			if o.ListenBase < 1 || o.ListenBase > most {
				return usage("--listen-base must be between 1 and %d: the replicas have it and the next two ports", most)
			}
			return a.demo(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Dir, "dir", "", "an empty folder for the demo, which is kept (default a temporary one)")
	flags.BoolVar(&o.Keep, "keep", false, "keep the temporary folder")
	flags.IntVar(&o.ListenBase, "listen-base", o.ListenBase, "port of replica a, b and c have the next ones; taken ones are replaced")
	cmd.AddCommand(a.demoKillCommand())
	return cmd
}

func (a *app) demo(ctx context.Context, o demo.Options) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding our own program: %w", err)
	}
	o.Executable, o.Environ, o.Version, o.Hurry = exe, demoEnviron(os.Environ()), buildVersion().Version, a.Hurry
	if o.Dir != "" {
		o.Dir = a.path(o.Dir)
	}
	o.Say = func(format string, args ...any) {
		_, _ = fmt.Fprintln(a.Stdout, a.Now().Format("15:04:05")+"  "+output.Clean(fmt.Sprintf(format, args...)))
	}
	return demo.Run(ctx, o)
}

// demoEnviron is the environment without what would change the replicas' configuration.
func demoEnviron(all []string) (rest []string) {
	set := map[string]bool{"DATABASE_URL": true, "CRONLATCH_CONFIG": true, "CRONLATCH_REPLICA": true, "CRONLATCH_LABELS": true}
	for _, k := range serveKeys() {
		set["CRONLATCH_"+strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(k.flag))] = true
	}
	for _, entry := range all {
		if name, _, _ := strings.Cut(entry, "="); !set[name] {
			rest = append(rest, entry)
		}
	}
	return rest
}

func (a *app) demoKillCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "kill [REPLICA]",
		Short:   "Kill a replica of the running demo; without a name, one that holds a lock",
		Example: "  $ cronlatch demo kill\n  $ cronlatch demo kill b",
		Args:    atMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" {
				dir = a.path(dir)
			}
			return a.demoKill(cmd.Context(), dir, strings.Join(args, ""))
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder of the demo (default the one that was started last)")
	return cmd
}

func (a *app) demoKill(ctx context.Context, dir, replica string) error {
	killed, err := demo.Kill(ctx, dir, replica)
	if errors.Is(err, demo.ErrNone) {
		return fail(exitFailure, "%w", err).withHint("`cronlatch demo` starts one; --dir names the folder of one that has its own")
	}
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	what := "it held no lock; `cronlatch demo kill` without a name kills one that does"
	if len(killed.Held) > 0 {
		what = "it held " + strings.Join(killed.Held, ", ") + ": the demo shows who takes over"
	}
	a.say("replica %s is killed; %s", killed.Replica, what)
	return nil
}
