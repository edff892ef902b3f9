package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

func (a *app) replicasCommand() *cobra.Command {
	return groupCommand("replicas", "See the daemons that share the database, and drain one",
		"  $ cronlatch replicas list\n  $ cronlatch replicas drain b --wait",
		a.replicasListCommand(), a.replicasDrainCommand(), a.replicasUndrainCommand())
}

func (a *app) replicasListCommand() *cobra.Command {
	var format output.Format
	var server string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the replicas, and which of them have other jobs than the rest",
		Long: "replicas list asks the database who is there. A replica whose jobs are defined in another way than those of most\n" +
			"is marked with a star: it has another file, or was not reloaded. One that has said nothing for lock.ttl is silent:\n" +
			"killed, frozen, or cut off. Those that left are not shown, nor those that were silent for a day.",
		Example: "  $ cronlatch replicas list\n  $ cronlatch replicas list -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withAPI(cmd.Context(), server, func(ctx context.Context, c *api) error {
				list, err := c.replicas(ctx)
				if err != nil {
					return err
				}
				return a.listReplicas(list, format)
			})
		},
	}
	addServer(cmd, &server)
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

func (c *api) replicas(ctx context.Context) ([]wire.Replica, error) {
	var list wire.ReplicaList
	err := c.get(ctx, "/replicas", nil, &list)
	return list.Replicas, err
}

func (a *app) listReplicas(list []wire.Replica, format output.Format) error {
	if len(list) == 0 {
		a.say("there is no replica; `cronlatch serve` starts one")
	}
	if n := odd(list); n > 0 {
		a.say("%s with other jobs than most (*): `cronlatch reload` lets a daemon read its file again", counted(n, "replica"))
	}
	return output.Write(a.answer(format), output.List[wire.Replica]{
		Items: list, Columns: replicaColumns(), Name: func(v wire.Replica) string { return v.Name },
	})
}

func odd(list []wire.Replica) (n int) {
	for i := range list {
		if list[i].Odd {
			n++
		}
	}
	return n
}

func replicaColumns() []output.Column[wire.Replica] {
	return []output.Column[wire.Replica]{
		{Title: "NAME", Cell: func(v wire.Replica) string { return v.Name }},
		{Title: "STATE", Cell: func(v wire.Replica) string { return v.State }, Tone: replicaTone},
		{Title: "HOST", Cell: func(v wire.Replica) string { return v.Host }},
		{Title: "PID", Cell: func(v wire.Replica) string { return strconv.Itoa(v.PID) }, Right: true},
		{Title: "VERSION", Cell: func(v wire.Replica) string { return v.Version }},
		{Title: "DEFINITIONS", Cell: replicaHash},
		{Title: "RUNNING", Cell: func(v wire.Replica) string { return fmt.Sprintf("%d/%d", v.Running, v.Capacity) }, Right: true},
		{Title: "LABELS", Cell: func(v wire.Replica) string { return labelsText(v.Labels) }},
		{Title: "SEEN", Cell: func(v wire.Replica) string { return relative(-time.Duration(v.SilentMS) * time.Millisecond) }},
	}
}

// labelsText is how --label and CRONLATCH_LABELS take them.
func labelsText(labels map[string]string) string {
	items := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		items = append(items, name+"="+labels[name])
	}
	return strings.Join(items, ",")
}

func replicaTone(v wire.Replica) output.Tone {
	switch v.State {
	case wire.ReplicaUp:
		return output.Good
	case wire.ReplicaSilent:
		return output.Bad
	default:
		return output.Warn
	}
}

// hash is as much of it as tells two apart, with the mark.
func replicaHash(v wire.Replica) string {
	text := v.Definitions[:min(12, len(v.Definitions))]
	if v.Odd {
		text += " *"
	}
	return text
}
