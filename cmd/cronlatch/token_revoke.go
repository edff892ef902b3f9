package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/auth"
)

// seenWait is how long after its writing a change of the table holds on every replica, and a little more.
const seenWait = auth.Freshness + 100*time.Millisecond

func (a *app) tokenRevokeCommand() *cobra.Command {
	var anyway bool
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "End a token, in the database or in a configuration; returns when every replica refuses it",
		Long: "token revoke ends a token for good: a restart does not bring it back, and neither does a configuration that has it.\n" +
			"It returns when every replica that reaches the database refuses the token, about a second later. Locks that were\n" +
			"taken with it stay until they expire; an admin may force-release them.",
		Example: "  $ cronlatch token revoke ci",
		Args:    oneArg("the id of a token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.revokeToken(cmd.Context(), args[0], anyway); err != nil {
				return err
			}
			if err := untilSeen(cmd.Context()); err != nil {
				return err
			}
			a.say("the token %s is revoked; every replica that reaches the database refuses it", args[0])
			return nil
		},
	}
	cmd.Flags().BoolVar(&anyway, "anyway", false, "even when neither the database nor the configuration here has it: another replica's may")
	return cmd
}

func (a *app) revokeToken(ctx context.Context, id string, anyway bool) error {
	if _, err := auth.New(id); err != nil {
		return usage("%q is no id: 1 to 32 characters of a-z, 0-9 and -", id)
	}
	anyway = anyway || a.isConfigured(id)
	return a.withTokens(ctx, func(ctx context.Context, s *auth.Store) error {
		snapshot, err := s.Load(ctx)
		if err != nil {
			return err
		}
		known := slices.ContainsFunc(snapshot.Entries, func(e auth.Entry) bool { return e.ID == id })
		if !known && !anyway {
			return fail(exitFailure, "there is no token %s, neither in the database nor in the configuration here%s", id, didYouMean(id, "", ids(snapshot))).
				withHint("--anyway revokes it in the configuration of every replica that may have it")
		}
		return s.Revoke(ctx, id, requester())
	})
}

func ids(s auth.Snapshot) []string {
	list := make([]string, len(s.Entries))
	for i, e := range s.Entries {
		list[i] = e.ID
	}
	return list
}

// untilSeen waits for the replicas: what they know of the table is never older than that.
func untilSeen(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(seenWait):
		return nil
	}
}
