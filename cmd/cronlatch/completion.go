package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

func (a *app) completionCommand() *cobra.Command {
	const how = "completion prints a script for your shell, which knows commands and flags, and the names of your jobs, locks, runs and\n" +
		"replicas as well. bash: source <(cronlatch completion bash), in ~/.bashrc; zsh: into a file _cronlatch of $fpath; fish:\n" +
		"into ~/.config/fish/completions/cronlatch.fish; powershell: cronlatch completion powershell | Out-String | Invoke-Expression."
	shells := map[string]func(root *cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return bashCompletion(root, a.Stdout) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(a.Stdout) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(a.Stdout, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(a.Stdout) },
	}
	names := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print a script that completes command lines: bash, zsh, fish or powershell",
		Long:      how,
		Example:   "  $ cronlatch completion bash > /etc/bash_completion.d/cronlatch",
		ValidArgs: names,
		Args:      oneArg("the name of a shell: bash, zsh, fish or powershell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			script, ok := shells[args[0]]
			if !ok {
				return usage("there is no completion for %q%s", args[0], didYouMean(args[0], "", names)).
					withHint("it is one of %s", strings.Join(names, ", "))
			}
			return script(cmd.Root())
		},
	}
}

// completionShare of the patience is what somebody who pressed Tab has for a database: half a second.
const completionShare = 10

type completer = func(ctx context.Context) []string

// complete gives the commands their completions, by path: which command takes what is in one place, and a command that is
// not there is passed over.
func (a *app) complete(root *cobra.Command) {
	arguments := map[string]completer{
		"run": a.jobNames, "next": a.jobNames, "explain": a.jobsAndRuns, "logs": a.jobsAndRuns,
		"jobs show": a.jobNames, "jobs pause": a.jobNames, "jobs resume": a.jobNames, "jobs backfill": a.jobNames,
		"runs show": a.runIDs, "runs cancel": a.runIDs, "runs retry": a.runIDs, "runs wait": a.runIDs,
		"lock": a.lockNames, "locks show": a.lockNames, "locks release": a.lockNames,
		"replicas drain": a.replicaNames, "replicas undrain": a.replicaNames, "demo kill": fixed("a", "b", "c"),
		"notify test": a.channelNames,
	}
	flags := map[string]completer{
		"job": a.jobNames, "replica": a.replicaNames, "tag": a.tags, "resource": a.lockNames,
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if names, ok := arguments[commandName(cmd)]; ok && cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
				switch {
				case len(args) == 0 || takesSeveral(cmd):
					return begins(names(cmd.Context()), start, args), cobra.ShellCompDirectiveNoFileComp
				case cmd.Name() == "lock": // then comes a command with its arguments
					return nil, cobra.ShellCompDirectiveDefault
				default:
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			names := flags[f.Name]
			if closed, ok := f.Value.(interface{ words() []string }); ok {
				names = fixed(closed.words()...)
			}
			if names == nil || cmd.Name() == "serve" {
				return
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Name, // an error is one that has a completion already
				func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
					return begins(names(cmd.Context()), start, nil), cobra.ShellCompDirectiveNoFileComp
				})
		})
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
}

// takesSeveral reports whether a name may follow a name: JOB... in the line of use.
func takesSeveral(cmd *cobra.Command) bool {
	words := strings.Fields(cmd.Use)
	return len(words) > 1 && strings.HasSuffix(words[1], "...")
}

// commandWords are the commands that may follow those before.
func commandWords(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	at, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return begins(pageNames(at), start, nil), cobra.ShellCompDirectiveNoFileComp
}

// pageNames are the subcommands that have a page of help: those that people see, and topics.
func pageNames(cmd *cobra.Command) (names []string) {
	for _, c := range manChildren(cmd) {
		names = append(names, c.Name())
	}
	return names
}

func fixed(words ...string) completer { return func(context.Context) []string { return words } }

// begins are the words that begin so and are not on the line yet. Those that would act on a terminal are left out: the shell
// prints them.
func begins(words []string, start string, not []string) (fit []string) {
	for _, w := range words {
		if strings.HasPrefix(w, start) && !slices.Contains(not, w) && !strings.ContainsFunc(w, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			fit = append(fit, w)
		}
	}
	return fit
}

// jobNames are those of the file. A file that cannot be read completes nothing.
func (a *app) jobNames(context.Context) (names []string) {
	config, err := a.loadConfig()
	if err != nil {
		return nil
	}
	for _, j := range config.Jobs {
		names = append(names, j.Name)
	}
	return names
}

func (a *app) channelNames(context.Context) []string {
	config, err := a.loadConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Channels))
}

func (a *app) tags(context.Context) (tags []string) {
	config, err := a.loadConfig()
	if err != nil {
		return nil
	}
	for _, j := range config.Jobs {
		tags = append(tags, j.Tags...)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

func (a *app) jobsAndRuns(ctx context.Context) []string {
	return append(a.jobNames(ctx), a.runIDs(ctx)...)
}

// glance asks the database, if it answers at once. It never makes or migrates one.
func (a *app) glance(ctx context.Context, ask func(ctx context.Context, db *database.DB) []string) []string {
	target, err := a.target()
	if err != nil || target.Kind == database.SQLite && missingFile(target.Path) != nil {
		return nil
	}
	patience := a.Patience / completionShare
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	db, err := database.Open(target, database.Options{AppName: "cronlatch completion", MaxConns: 1, RenewConns: 1, StatementTimeout: patience})
	if err != nil {
		return nil
	}
	defer func() { _ = db.Close() }()
	return ask(ctx, db)
}

// completed is how many names a shell is given at most.
const completed = 100

func (a *app) runIDs(ctx context.Context) []string {
	return a.glance(ctx, func(ctx context.Context, db *database.DB) (ids []string) {
		ledger, err := jobs.OpenLedger(db.Main)
		if err != nil {
			return nil
		}
		runs, err := ledger.List(ctx, jobs.RunFilter{Limit: completed})
		if err != nil {
			return nil
		}
		for i := range runs {
			ids = append(ids, strconv.FormatInt(runs[i].ID, 10))
		}
		return ids
	})
}

func (a *app) lockNames(ctx context.Context) []string {
	return a.glance(ctx, func(ctx context.Context, db *database.DB) (names []string) {
		store, err := locking.NewStore(db.Main)
		if err != nil {
			return nil
		}
		locks, err := store.List(ctx, locking.ListFilter{Limit: completed})
		if err != nil {
			return nil
		}
		for i := range locks {
			names = append(names, locks[i].Resource)
		}
		return names
	})
}

func (a *app) replicaNames(ctx context.Context) []string {
	return a.glance(ctx, func(ctx context.Context, db *database.DB) (names []string) {
		rows, err := scheduler.Replicas(ctx, db.Main, 24*time.Hour)
		if err != nil {
			return nil
		}
		for i := range rows {
			names = append(names, rows[i].Name)
		}
		return names
	})
}
