package main

import (
	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Long: "schema prints a JSON Schema (draft-07) of configuration files, which editors complete and check by. `init` writes\n" +
			"it beside the file; after an update of this program, write it again. A file of yours names it in its first line:\n\n" +
			"  # yaml-language-server: $schema=./" + configs.SchemaName + "\n\n" +
			"What the schema refuses, `validate` refuses, too; validate sees more.",
		Example: "  $ cronlatch schema > " + configs.SchemaName,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Stdout.Write(configs.SchemaJSON())
			return err
		},
	}
}
