package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// params is a flag that takes one parameter of a run at a time.
type params struct{ given *map[string]string }

// addParams gives the command -p.
func addParams(cmd *cobra.Command, given *map[string]string) {
	cmd.Flags().VarP(params{given}, "param", "p", "a parameter that the job declares, as name=value; may be repeated")
}

func (p params) String() string {
	if p.given == nil {
		return ""
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*p.given)) {
		all = append(all, name+"="+(*p.given)[name])
	}
	return strings.Join(all, " ")
}

// Type is what the help shows.
func (params) Type() string { return "name=value" }

func (p params) Set(text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return fmt.Errorf("%q is not a parameter like month=2026-05", text)
	}
	if _, twice := (*p.given)[name]; twice {
		return fmt.Errorf("the parameter %s is given twice", name)
	}
	if *p.given == nil {
		*p.given = map[string]string{}
	}
	(*p.given)[name] = value
	return nil
}
