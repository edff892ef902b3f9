package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/locking"
)

const releaseHelp = `release frees the lock of RESOURCE for its owner, or with --force takes it away from whoever holds it.

By force, the holder can no longer renew the lock, and the name stays taken until the lock would have ended, so that
the holder stops first. With --immediate it is free at once, while the holder may still be working. What is taken away
is one grant: without --fencing-token the one that is shown before. On a terminal it asks; otherwise it needs --yes.
The audit keeps who did it (account and host, or the token's name on a server) and the reason.`

// releaseFlags are the flags of locks release.
type releaseFlags struct {
	owner, reason         string
	token                 int64
	force, immediate, yes bool
	server                string
}

func (a *app) locksReleaseCommand() *cobra.Command {
	var f releaseFlags
	cmd := &cobra.Command{
		Use:   "release RESOURCE (--owner OWNER | --force --reason TEXT)",
		Short: "Release a lock, or take it away from its holder",
		Long:  releaseHelp,
		Example: "  $ cronlatch locks release deploy --owner ci-4711\n" +
			"  $ cronlatch locks release deploy --force --reason \"build3 is gone for good\"",
		Args: oneArg("the name of a resource"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return a.withLocks(cmd.Context(), f.server, func(ctx context.Context, b lockBackend) error {
				if f.force {
					return a.forceLock(cmd.Context(), ctx, forcing{b, args[0], f})
				}
				return a.releaseLock(ctx, b, locking.Claim{Resource: args[0], Owner: f.owner, FencingToken: f.token})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.owner, "owner", "", "release as this owner")
	flags.Int64Var(&f.token, "fencing-token", 0, "only the grant with this token")
	flags.BoolVar(&f.force, "force", false, "take the lock away from its holder")
	flags.StringVar(&f.reason, "reason", "", "why, for the audit")
	flags.BoolVar(&f.immediate, "immediate", false, "with --force: free the name at once, before the holder has stopped")
	flags.BoolVar(&f.yes, "yes", false, "with --force: do not ask")
	addServer(cmd, &f.server)
	return cmd
}

func (f *releaseFlags) check(cmd *cobra.Command) error {
	token := cmd.Flags().Changed("fencing-token")
	switch {
	case f.force == (f.owner != ""):
		return usage("locks release needs either --owner or --force")
	case token && (f.token < 1 || f.token > locking.MaxToken):
		return usage("--fencing-token must be a number from 1 to %d", int64(locking.MaxToken))
	case f.force && strings.TrimSpace(f.reason) == "":
		return usage("--force needs a --reason, for the audit")
	case !f.force && (f.reason != "" || f.immediate || f.yes):
		return usage("--reason, --immediate and --yes belong to --force")
	}
	return nil
}

func (a *app) releaseLock(ctx context.Context, b lockBackend, claim locking.Claim) error {
	results, err := b.store.Release(ctx, []locking.Claim{claim})
	if err == nil {
		err = results[0].Err
	}
	switch {
	case err == nil:
		a.say("the lock %q is released", claim.Resource)
		return nil
	case errors.Is(err, locking.ErrNotFound):
		return fail(exitFailure, "the lock %q is not held; there is nothing to release", claim.Resource)
	case errors.Is(err, locking.ErrNotOwner):
		return fail(exitDenied, "the lock %q is held by another owner, or by this one with another token of a server", claim.Resource).
			withHint("`cronlatch locks show %s` shows the holder; --force takes the lock away", word(claim.Resource))
	case errors.Is(err, locking.ErrStaleToken):
		return staleToken(claim.Resource, claim.FencingToken)
	default:
		return err
	}
}

func staleToken(resource string, token int64) *failure {
	return fail(exitFailure, "%d is not the fencing token of the lock %q (any more); nothing was released", token, resource).
		withHint("`cronlatch locks show %s` shows the holder", word(resource))
}

// forcing is one lock that is to be taken away.
type forcing struct {
	lockBackend

	resource string
	releaseFlags
}

// forceLock shows whom it hits, asks, and takes exactly that grant away. A person may take longer than calls lasts.
func (a *app) forceLock(ctx, calls context.Context, f forcing) error {
	record, err := f.store.Get(calls, f.resource)
	if errors.Is(err, locking.ErrNotFound) {
		return isFree(f.resource)
	}
	if err != nil {
		return err
	}
	for _, line := range lockSentences(&record) {
		a.say("%s", line)
	}
	if f.token != 0 && f.token != record.FencingToken {
		return staleToken(f.resource, f.token)
	}
	if !f.yes {
		if err := a.ask(ctx, "take it away from its holder? Type yes to go on:", "nothing was released"); err != nil {
			return err
		}
	}
	calls, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	return a.forced(f, &record, a.takeAway(calls, f, record.FencingToken))
}

// takeAway leaves it to the database whether the grant is still the one that was shown.
func (*app) takeAway(ctx context.Context, f forcing, token int64) error {
	_, err := f.store.ForceRelease(ctx, locking.Force{
		Resource: f.resource, FencingToken: token, Reason: f.reason, Actor: requester(), Immediate: f.immediate,
	})
	return err
}

func (a *app) forced(f forcing, r *locking.Record, err error) error {
	switch {
	case errors.Is(err, locking.ErrNotFound):
		return isFree(f.resource)
	case errors.Is(err, locking.ErrStaleToken):
		return staleToken(f.resource, r.FencingToken)
	case err != nil:
		return err
	case f.immediate:
		a.say("the lock %q is free", f.resource)
	default:
		a.say("the lock %q can no longer be renewed; others can have it at %s at the latest", f.resource, stamp(r.ExpiresAt))
	}
	return nil
}
