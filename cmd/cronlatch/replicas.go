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

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

func (a *app) replicasCommand() *cobra.Command {
	return groupCommand("replicas", "See the daemons that share the database", "  $ cronlatch replicas list", a.replicasListCommand())
}

// heardOf is how long a replica that says nothing is still shown.
const heardOf = 24 * time.Hour

func (a *app) replicasListCommand() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the replicas, and which of them have other jobs than the rest",
		Long: "replicas list asks the database who is there. A replica whose jobs are defined in another way than those of most\n" +
			"is marked with a star: it has another file, or was not reloaded. One that has said nothing for lock.ttl is silent:\n" +
			"killed, frozen, or cut off. Those that left are not shown, nor those that were silent for a day.",
		Example: "  $ cronlatch replicas list\n  $ cronlatch replicas list -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDatabase(cmd.Context(), func(ctx context.Context, db *database.DB) error {
				return a.listReplicas(ctx, db, format)
			})
		},
	}
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

// replicaView is a replica as commands print it.
type replicaView struct {
	Name        string           `json:"name"`
	State       string           `json:"state"` // up, draining or silent
	Host        string           `json:"host"`
	PID         int              `json:"pid"`
	Version     string           `json:"version"`
	Definitions string           `json:"definitions"` // the hash of its jobs
	Odd         bool             `json:"odd"`         // most of those that are up have another hash
	Running     int              `json:"running"`
	Capacity    int              `json:"capacity"`
	Draining    bool             `json:"draining"`
	Labels      scheduler.Labels `json:"labels"`
	JoinedAt    time.Time        `json:"joined_at"`
	SeenAt      time.Time        `json:"seen_at"`

	silence time.Duration
}

func (a *app) listReplicas(ctx context.Context, db *database.DB, format output.Format) error {
	rows, err := scheduler.Replicas(ctx, db.Main, heardOf)
	if err != nil {
		return err
	}
	views := viewReplicas(rows, a.lockTTL())
	if len(views) == 0 {
		a.say("there is no replica; `cronlatch serve` starts one")
	}
	if n := odd(views); n > 0 {
		a.say("%s with other jobs than most (*): `cronlatch reload` lets a daemon read its file again", counted(n, "replica"))
	}
	return output.Write(a.answer(format), output.List[replicaView]{
		Items: views, Columns: replicaColumns(), Name: func(v replicaView) string { return v.Name },
	})
}

// lockTTL is how long a replica may be silent. Without a file that can be read it is the usual span: only a word depends
// on it.
func (a *app) lockTTL() time.Duration {
	if config, err := a.loadConfig(); err == nil {
		return config.Lock.TTL
	}
	return locking.DefaultTTL
}

func viewReplicas(rows []scheduler.ReplicaRow, ttl time.Duration) []replicaView {
	views := make([]replicaView, len(rows))
	for i := range rows {
		r := &rows[i]
		views[i] = replicaView{
			Name: r.Name, State: "up", Host: r.Host, PID: r.PID, Version: r.Version, Definitions: r.Hash,
			Running: r.Running, Capacity: r.Capacity, Draining: r.Draining, Labels: r.Labels,
			JoinedAt: r.JoinedAt.UTC(), SeenAt: r.SeenAt.UTC(), silence: r.Silence(),
		}
		switch {
		case r.Silence() > ttl:
			views[i].State = "silent"
		case r.Draining:
			views[i].State = "draining"
		}
	}
	markOdd(views)
	return views
}

// markOdd marks who has other jobs than most of those that are up. Where no hash is that of most, nobody can say who is
// right, and all are odd.
func markOdd(views []replicaView) {
	votes := map[string]int{}
	for _, v := range views {
		if v.State == "up" {
			votes[v.Definitions]++
		}
	}
	most, second, winner := 0, 0, ""
	for hash, n := range votes {
		if n > most {
			most, second, winner = n, most, hash
		} else {
			second = max(second, n)
		}
	}
	for i := range views {
		v := &views[i]
		v.Odd = v.State == "up" && (most == second || v.Definitions != winner)
	}
}

func odd(views []replicaView) (n int) {
	for _, v := range views {
		if v.Odd {
			n++
		}
	}
	return n
}

func replicaColumns() []output.Column[replicaView] {
	return []output.Column[replicaView]{
		{Title: "NAME", Cell: func(v replicaView) string { return v.Name }},
		{Title: "STATE", Cell: func(v replicaView) string { return v.State }, Tone: replicaView.tone},
		{Title: "HOST", Cell: func(v replicaView) string { return v.Host }},
		{Title: "PID", Cell: func(v replicaView) string { return strconv.Itoa(v.PID) }, Right: true},
		{Title: "VERSION", Cell: func(v replicaView) string { return v.Version }},
		{Title: "DEFINITIONS", Cell: replicaView.hash},
		{Title: "RUNNING", Cell: func(v replicaView) string { return fmt.Sprintf("%d/%d", v.Running, v.Capacity) }, Right: true},
		{Title: "LABELS", Cell: func(v replicaView) string { return labelsText(v.Labels) }},
		{Title: "SEEN", Cell: func(v replicaView) string { return relative(-v.silence) }},
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

func (v replicaView) tone() output.Tone {
	switch v.State {
	case "up":
		return output.Good
	case "silent":
		return output.Bad
	default:
		return output.Warn
	}
}

// hash is as much of it as tells two apart, with the mark.
func (v replicaView) hash() string {
	text := v.Definitions[:min(12, len(v.Definitions))]
	if v.Odd {
		text += " *"
	}
	return text
}
