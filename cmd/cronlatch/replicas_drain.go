package main

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/wire"
)

// drainFlags are the flags of replicas drain.
type drainFlags struct {
	reason string
	wait   bool
	server string
}

func (a *app) replicasDrainCommand() *cobra.Command {
	var f drainFlags
	cmd := &cobra.Command{
		Use:   "drain NAME",
		Short: "Let a replica take no more runs; what runs there goes on to its end",
		Long: "The replica takes no new runs, which it notices within about a second, and says 503 at /readyz. It stays in the fleet\n" +
			"until `replicas undrain`, or until its process ends: one that is started again takes runs. --wait returns when\n" +
			"nothing runs there any more, or the replica is gone.",
		Example: "  $ cronlatch replicas drain b --reason \"kernel update\" --wait",
		Args:    oneArg("the name of a replica"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAPI(cmd.Context(), f.server, func(ctx context.Context, c *api) error {
				return a.drain(cmd.Context(), ctx, c, args[0], f)
			})
		},
	}
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the audit and for whoever sees the replica")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "return when nothing runs there any more")
	addServer(cmd, &f.server)
	return cmd
}

func (a *app) replicasUndrainCommand() *cobra.Command {
	var server string
	cmd := &cobra.Command{
		Use: "undrain NAME", Short: "Let a replica take runs again", Example: "  $ cronlatch replicas undrain b",
		Args: oneArg("the name of a replica"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAPI(cmd.Context(), server, func(ctx context.Context, c *api) error {
				var list wire.ReplicaList
				if err := c.post(ctx, replicaPath(args[0], "/undrain"), struct{}{}, &list); err != nil {
					return aboutReplica(err)
				}
				a.sayNamesakes(args[0], list.Replicas)
				a.say("the replica %q takes runs again", args[0])
				return nil
			})
		},
	}
	addServer(cmd, &server)
	return cmd
}

func replicaPath(name, more string) string { return "/replicas/" + url.PathEscape(name) + more }

// aboutReplica adds what to type to an answer about a replica that is not there.
func aboutReplica(err error) error {
	if isProblem(err, "not_found") {
		return fail(exitFailure, "%w", err).withHint("`cronlatch replicas list` shows them")
	}
	return err
}

// sayNamesakes: nobody could say which of several processes of one name is meant.
func (a *app) sayNamesakes(name string, list []wire.Replica) {
	if len(list) > 1 {
		a.say("%d processes are called %q: all of them", len(list), name)
	}
}

// drain asks, says what goes on, and waits when it was told to: for longer than calls lasts.
func (a *app) drain(ctx, calls context.Context, c *api, name string, f drainFlags) error {
	var asked wire.ReplicaList
	if err := c.post(calls, replicaPath(name, "/drain"), wire.DrainRequest{Reason: f.reason}, &asked); err != nil {
		return aboutReplica(err)
	}
	a.sayNamesakes(name, asked.Replicas)
	a.say("the replica %q takes no new runs; `cronlatch replicas undrain %s` takes that back", name, word(name))
	all, err := c.replicas(calls)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(r wire.Replica) bool { return r.State == wire.ReplicaUp }) {
		a.say("no other replica takes runs: what falls due waits")
	}
	if !f.wait {
		return nil
	}
	return a.awaitIdle(ctx, c, name)
}

// drainEvery is the pause between two looks at a replica that drains.
const drainEvery = 500 * time.Millisecond

// awaitIdle waits until nothing runs on the replicas of a name. While nobody answers, it goes on to ask.
func (a *app) awaitIdle(ctx context.Context, c *api, name string) error {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	told := -1
	for {
		running, noticed, err := a.runningOn(ctx, c, name)
		switch {
		case ctx.Err() != nil:
			return fail(exitInterrupted, "not waiting any longer; the replica goes on to drain")
		case err == nil && noticed && running == 0:
			a.say("nothing runs on %q any more", name)
			return nil
		case err != nil && !isAway(err):
			return err
		case err == nil && noticed && running != told:
			a.say("%s on %q", counted(running, "running run"), name)
			told = running
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// runningOn counts the runs of the replicas of a name, and says whether all of them have noticed that they should drain: one
// that has not may begin another run. Those that are silent are not waited for: their runs are being given away.
func (a *app) runningOn(ctx context.Context, c *api, name string) (running int, noticed bool, err error) {
	calls, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	list, err := c.replicas(calls)
	noticed = true
	for i := range list {
		if r := &list[i]; r.Name == name && r.State != wire.ReplicaSilent {
			running += r.Running
			noticed = noticed && r.Draining
		}
	}
	return running, noticed, err
}
