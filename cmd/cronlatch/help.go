package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpText starts with an example: most people look for a line to copy.
func helpText(cmd *cobra.Command) string {
	var b strings.Builder
	if cmd.Example != "" {
		b.WriteString(cmd.Example + "\n\n")
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	b.WriteString(text + "\n")
	if !cmd.Runnable() {
		return b.String()
	}
	b.WriteString("\nUsage: " + useLine(cmd) + "\n")
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-10s %s\n", c.Name(), c.Short)
			}
		}
	}
	if flags := cmd.LocalNonPersistentFlags().FlagUsages(); flags != "" {
		b.WriteString("\nFlags:\n" + flags)
	}
	global := cmd.PersistentFlags().FlagUsages() + cmd.InheritedFlags().FlagUsages()
	b.WriteString("\nFlags of every command:\n" + global)
	if !cmd.HasParent() {
		b.WriteString("\nSee also: cronlatch help COMMAND, cronlatch help exit-codes\n")
	}
	return b.String()
}

func useLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " COMMAND"
	}
	return cmd.UseLine()
}

func (*app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Say how a command is used",
		Example: "  $ cronlatch help run",

		ValidArgsFunction: commandWords,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := page(cmd.Root(), args)
			if err != nil {
				return err
			}
			at.InitDefaultHelpFlag()
			at.InitDefaultVersionFlag()
			return at.Help()
		},
	}
}

// exitCodesTopic is a page, not a command.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:     "exit-codes",
		Short:   "What the exit codes mean",
		Long:    exitCodesText(),
		Example: "  $ cronlatch run backup:db || echo \"it ended with $?\"",
	}
}
