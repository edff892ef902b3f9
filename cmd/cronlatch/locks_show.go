package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/locking"
)

func (a *app) locksShowCommand() *cobra.Command {
	var format output.Format
	var server string
	cmd := &cobra.Command{
		Use:   "show RESOURCE",
		Short: "Tell all about one lock; 1 when it is free",
		Long: "show says who holds the lock of RESOURCE, since when and until when, and by which owner and fencing token. When\n" +
			"nobody does, it says so and exits with 1.",
		Example: "  $ cronlatch locks show deploy\n  $ cronlatch locks show db/orders -o json",
		Args:    oneArg("the name of a resource"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withLocks(cmd.Context(), server, func(ctx context.Context, b lockBackend) error {
				return a.showLock(ctx, b, args[0], format)
			})
		},
	}
	addServer(cmd, &server)
	addOutput(cmd, &format, output.Table, output.JSON, output.YAML, output.Name)
	return cmd
}

func (a *app) showLock(ctx context.Context, b lockBackend, resource string, format output.Format) error {
	record, err := b.store.Get(ctx, resource)
	if errors.Is(err, locking.ErrNotFound) {
		return isFree(resource)
	}
	if err != nil {
		return err
	}
	v := viewLock(&record)
	return output.WriteValue(a.answer(format), v, func() []string {
		if format == output.Name {
			return []string{v.Resource}
		}
		return lockSentences(&record)
	})
}

func isFree(resource string) *failure { return fail(exitFailure, "the lock %q is free", resource) }

// lockSentences tell a lock to a person. A server does not know when a lock was renewed.
func lockSentences(r *locking.Record) []string {
	lines := []string{
		fmt.Sprintf("The lock %q is held by %s.", r.Resource, holderName(r)),
		fmt.Sprintf("It was acquired at %s (%s).", stamp(r.AcquiredAt), relative(r.AcquiredAt.Sub(r.Now))),
	}
	if r.RenewedAt.After(r.AcquiredAt) {
		lines = append(lines, fmt.Sprintf("It was renewed at %s (%s).", stamp(r.RenewedAt), relative(r.RenewedAt.Sub(r.Now))))
	}
	if r.ReleasedAt != nil {
		lines = append(lines, fmt.Sprintf("It was force-released at %s (%s): its holder can no longer renew it, and others can have it at %s (%s).",
			stamp(*r.ReleasedAt), relative(r.ReleasedAt.Sub(r.Now)), stamp(r.ExpiresAt), relative(r.Remaining())))
	} else {
		lines = append(lines, fmt.Sprintf("Unless it is renewed, it ends at %s (%s).", stamp(r.ExpiresAt), relative(r.Remaining())))
	}
	lines = append(lines, fmt.Sprintf("Its fencing token is %d, and its owner is %s.", r.FencingToken, r.Owner))
	if r.Principal != "" {
		lines = append(lines, fmt.Sprintf("It was taken through a server with the token of %s.", r.Principal))
	}
	if text := string(r.Metadata); text != "" && text != "{}" {
		lines = append(lines, "Its metadata is "+text+".")
	}
	return lines
}
