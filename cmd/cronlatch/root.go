package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cronlatch/cronlatch/internal/output"
)

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "cronlatch",
		Short: "Run each due job on exactly one of several replicas",
		Long: "cronlatch runs named jobs from a YAML file. Several replicas share a database, and every due occurrence\n" +
			"of a job runs on exactly one of them, under a lock that is renewed while it runs.",
		Example:           "  $ cronlatch init && cronlatch serve",
		Version:           buildVersion().Version,
		Args:              cobra.ArbitraryArgs,
		RunE:              group,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.global.config, "config", "", "configuration file (CRONLATCH_CONFIG; default cronlatch.yaml)")
	flags.StringVar(&a.global.databaseURL, "database-url", "", "postgres://... or sqlite:PATH (DATABASE_URL; default from the file)")
	flags.Var(choice[output.ColorMode]{&a.global.color, []output.ColorMode{output.ColorAuto, output.ColorAlways, output.ColorNever}},
		"color", "when to use color; NO_COLOR is obeyed")
	root.SetVersionTemplate("cronlatch {{.Version}}\n")
	root.SetFlagErrorFunc(a.flagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _, _ = cmd.OutOrStdout().Write([]byte(helpText(cmd))) })
	root.SetHelpCommand(a.helpCommand())
	root.AddCommand(a.commands()...)
	a.complete(root)
	return root
}

// commands is the tree.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.initCommand(), a.importCommand(), a.validateCommand(), a.nextCommand(), a.planCommand(), a.serveCommand(), a.reloadCommand(), a.runCommand(),
		a.jobsCommand(), a.pauseAllCommand(), a.resumeAllCommand(), a.runsCommand(), a.lockCommand(), a.locksCommand(), a.replicasCommand(), a.auditCommand(),
		a.logsCommand(), a.notifyCommand(), a.explainCommand(), a.tokenCommand(), a.migrateCommand(), a.healthCommand(), a.openapiCommand(), a.schemaCommand(), a.versionCommand(),
		a.demoCommand(), a.doctorCommand(), a.completionCommand(), a.manCommand(),
		exitCodesTopic(),
	}
}

// groupCommand is a command that only has subcommands.
func groupCommand(name, short, example string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: group}
	cmd.AddCommand(subcommands...)
	return cmd
}

// group runs when no subcommand was found: without a word the root shows its help and a group says what it has; with
// one it was a typo.
func group(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return unknownCommand(cmd, args[0])
	case !cmd.HasParent():
		return cmd.Help()
	default:
		return usage("%s needs a subcommand: %s", commandName(cmd), strings.Join(subcommandNames(cmd), ", "))
	}
}

func subcommandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

func unknownCommand(cmd *cobra.Command, word string) *failure {
	return unknownAmong(cmd, word, subcommandNames(cmd))
}

// unknownPage is for help and man, which know topics as well.
func unknownPage(cmd *cobra.Command, word string) *failure {
	return unknownAmong(cmd, word, pageNames(cmd))
}

func unknownAmong(cmd *cobra.Command, word string, names []string) *failure {
	return usage("unknown command %q for %q%s", word, cmd.CommandPath(), didYouMean(word, "", names)).
		withHint("%q lists what there is", cmd.CommandPath()+" --help")
}

// flagError says what is wrong with a flag. A flag that a group does not know mostly belongs to a mistyped subcommand
// before it, and that is then the mistake to name.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	if word := a.wordAfter(cmd); cmd.HasSubCommands() && word != "" {
		return unknownCommand(cmd, word)
	}
	var unknown interface{ GetSpecifiedName() string }
	suggestion := ""
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		suggestion = didYouMean(unknown.GetSpecifiedName(), "--", flagNames(cmd))
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = plainValue(wrong)
	}
	return usage("%w%s", err, suggestion).withHint("%q lists the flags", cmd.CommandPath()+" --help")
}

// plainValue says what a number or a switch must be: the package that parsed it names its own function.
func plainValue(err *pflag.InvalidValueError) error {
	wrong, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err
	}
	what := "a whole number"
	switch {
	case errors.Is(wrong, strconv.ErrRange):
		what = "a smaller number"
	case wrong.Func == "ParseBool":
		what = "true or false"
	}
	return fmt.Errorf("invalid argument %q for \"--%s\" flag: it must be %s", err.GetValue(), err.GetFlag().Name, what)
}

// wordAfter is the first word of the command line that is neither a flag nor part of the command's own path.
func (a *app) wordAfter(cmd *cobra.Command) string {
	path := strings.Fields(cmd.CommandPath())[1:]
	for _, arg := range a.Args {
		switch {
		case strings.HasPrefix(arg, "-"):
			continue
		case len(path) > 0 && arg == path[0]:
			path = path[1:]
		default:
			return arg
		}
	}
	return ""
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	for line := range strings.Lines(cmd.LocalFlags().FlagUsages() + cmd.InheritedFlags().FlagUsages()) {
		if _, rest, ok := strings.Cut(line, "--"); ok {
			name := strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\n' || r == '[' })[0]
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
