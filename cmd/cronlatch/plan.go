package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/scheduler"
)

func (a *app) planCommand() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Say what the file would change against what the replicas run; exit code 2 when it would",
		Long: "plan compares the configuration with the replicas that are up: with the hash of their definitions, and with the\n" +
			"schedules that the database was asked to plan. The database has no definitions: which command, policy or variable\n" +
			"differs is told by `cronlatch reload`, and a job that runs by hand or after others is seen in the hash alone. The\n" +
			"hash covers what variables hold, so ask where they are set as they are for the daemon.",
		Example: "  $ cronlatch plan\n  $ cronlatch plan --config next.yaml || test $? = 2",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := a.loadConfig()
			if err != nil {
				return err
			}
			return a.withDatabase(cmd.Context(), func(ctx context.Context, db *database.DB) error {
				return a.plan(ctx, db, config, format)
			})
		},
	}
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

// The kinds of change that the database can tell.
const (
	changeAdd        = "add"        // no schedule of this job was ever planned
	changeReschedule = "reschedule" // others of it were
	changeRemove     = "remove"     // it was planned, and the file does not have it, or not with a schedule
)

// planChange is what a file changes for one job.
type planChange struct {
	Job    string     `json:"job"`
	Change string     `json:"change"`
	Next   *time.Time `json:"next"`          // null: never, or no longer
	Since  *time.Time `json:"planned_until"` // up to where it was planned; null when it was not
}

func (a *app) plan(ctx context.Context, db *database.DB, config *configs.Config, format output.Format) error {
	rows, err := scheduler.Replicas(ctx, db.Main, scheduler.HeardOf)
	if err != nil {
		return err
	}
	positions, err := scheduler.Positions(ctx, db.Main)
	if err != nil {
		return err
	}
	others, up := othersThan(config.Hash, wire.ReplicasOf(rows, config.Lock.TTL))
	changes := planChanges(config, positions, a.Now())
	differs := len(others) > 0 || up == 0 && len(changes) > 0
	if !differs {
		changes = []planChange{} // what was removed once, and is known to be gone
	}
	a.sayPlan(others, up, len(changes))
	if err := output.Write(a.answer(format), output.List[planChange]{
		Items: changes, Columns: planColumns(a.Now()), Name: func(c planChange) string { return c.Job },
	}); err != nil {
		return err
	}
	if differs {
		return exit(exitChanges)
	}
	return nil
}

// othersThan are the replicas that run other definitions than those with the hash; up counts all that run any.
func othersThan(hash string, views []wire.Replica) (others []string, up int) {
	for i := range views {
		v := &views[i]
		if v.State != wire.ReplicaUp {
			continue
		}
		up++
		if v.Definitions != hash {
			others = append(others, v.Name)
		}
	}
	return others, up
}

func (a *app) sayPlan(others []string, up, changes int) {
	switch {
	case up == 0:
		a.say("no replica is up; this is against what was planned before")
	case len(others) == 0:
		a.say("no changes: %s with these definitions", counted(up, "replica"))
		return
	default:
		a.say("%s of %d with other definitions: %s", counted(len(others), "replica"), up, strings.Join(others, ", "))
	}
	switch {
	case changes > 0:
	case up == 0:
		a.say("no changes of schedules")
	default:
		a.say("no schedule changes; it is something else of a job (or another version of the program): `cronlatch reload` says of which")
	}
}

// planChanges compares schedules with the positions, which have those of the past as well.
func planChanges(config *configs.Config, positions []scheduler.PositionRow, now time.Time) []planChange {
	furthest, planned := map[string]*time.Time{}, map[string]map[string]bool{}
	for i := range positions {
		p := &positions[i]
		if planned[p.Job] == nil { // the furthest of its schedules comes first
			at := p.Position.UTC()
			furthest[p.Job], planned[p.Job] = &at, map[string]bool{}
		}
		planned[p.Job][p.Hash] = true
	}
	changes := []planChange{}
	scheduled := map[string]bool{}
	for _, j := range config.Jobs {
		if j.Schedule == nil {
			continue
		}
		scheduled[j.Name] = true
		if c := (planChange{Job: j.Name, Next: wire.NextRun(j, now), Since: furthest[j.Name]}); !planned[j.Name][j.Schedule.Hash()] {
			c.Change = changeReschedule
			if c.Since == nil {
				c.Change = changeAdd
			}
			changes = append(changes, c)
		}
	}
	for name, at := range furthest {
		if !scheduled[name] {
			changes = append(changes, planChange{Job: name, Change: changeRemove, Since: at})
		}
	}
	slices.SortFunc(changes, func(a, b planChange) int { return strings.Compare(a.Job, b.Job) })
	return changes
}

func planColumns(now time.Time) []output.Column[planChange] {
	return []output.Column[planChange]{
		{Title: "JOB", Cell: func(c planChange) string { return c.Job }},
		{Title: "CHANGE", Cell: func(c planChange) string { return c.Change }, Tone: planChange.tone},
		{Title: "NEXT", Cell: func(c planChange) string {
			if c.Next == nil {
				return ""
			}
			return fmt.Sprintf("%s (%s)", stamp(*c.Next), relative(c.Next.Sub(now)))
		}},
		{Title: "PLANNED UNTIL", Cell: func(c planChange) string { return stampOrNone(c.Since) }},
	}
}

func (c planChange) tone() output.Tone {
	switch c.Change {
	case changeAdd:
		return output.Good
	case changeRemove:
		return output.Bad
	default:
		return output.Warn
	}
}
