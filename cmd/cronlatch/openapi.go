package main

import (
	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/httpapi"
)

func (a *app) openapiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "openapi",
		Short: "Print the description of the HTTP API as an OpenAPI 3.1 document",
		Long: "openapi prints the document that a daemon of this version serves at /openapi.json: for clients to be generated\n" +
			"from, and to see what changed between two versions.",
		Example: "  $ cronlatch openapi > openapi.json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Stdout.Write(httpapi.OpenAPI(buildVersion().Version))
			return err
		},
	}
}
