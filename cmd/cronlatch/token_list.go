package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/output"
)

func (a *app) tokenListCommand() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tokens of the database; never their secrets",
		Long:    "token list shows the table that all replicas share: tokens that are there, and revocations of tokens in configurations.",
		Example: "  $ cronlatch token list\n  $ cronlatch token list -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTokens(cmd.Context(), func(ctx context.Context, s *auth.Store) error {
				return a.listTokens(ctx, s, format)
			})
		},
	}
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

// tokenView is a token as commands print it.
type tokenView struct {
	ID        string     `json:"id"`
	State     string     `json:"state"`  // valid, expired or revoked
	Role      string     `json:"role"`   // "" when the row only revokes a token of a configuration
	Prefix    string     `json:"prefix"` // of the names that a locker may lock
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"` // null is never
	RevokedAt *time.Time `json:"revoked_at"` // null is not
}

func viewToken(e auth.Entry, now time.Time) tokenView {
	v := tokenView{ID: e.ID, State: "valid", Role: string(e.Role), Prefix: e.Prefix, CreatedAt: e.CreatedAt.UTC()}
	if e.Hash == "" {
		v.Role = ""
	}
	if !e.ExpiresAt.IsZero() {
		v.ExpiresAt = &e.ExpiresAt
		if !now.Before(e.ExpiresAt) {
			v.State = "expired"
		}
	}
	if !e.RevokedAt.IsZero() {
		v.RevokedAt, v.State = &e.RevokedAt, "revoked"
	}
	return v
}

func (a *app) listTokens(ctx context.Context, s *auth.Store, format output.Format) error {
	snapshot, err := s.Load(ctx)
	if err != nil {
		return err
	}
	views := make([]tokenView, len(snapshot.Entries))
	for i, e := range snapshot.Entries {
		views[i] = viewToken(e, snapshot.Now)
	}
	if len(views) == 0 {
		a.say("the database has no token; `cronlatch token create ID --role ROLE` makes one")
	}
	return output.Write(a.answer(format), output.List[tokenView]{Items: views, Columns: tokenColumns(), Name: func(v tokenView) string { return v.ID }})
}

func tokenColumns() []output.Column[tokenView] {
	return []output.Column[tokenView]{
		{Title: "ID", Cell: func(v tokenView) string { return v.ID }},
		{Title: "STATE", Cell: func(v tokenView) string { return v.State }},
		{Title: "ROLE", Cell: func(v tokenView) string { return v.Role }},
		{Title: "PREFIX", Cell: func(v tokenView) string { return v.Prefix }},
		{Title: "CREATED", Cell: func(v tokenView) string { return stamp(v.CreatedAt) }},
		{Title: "EXPIRES", Cell: func(v tokenView) string { return stampOrNone(v.ExpiresAt) }},
		{Title: "REVOKED", Cell: func(v tokenView) string { return stampOrNone(v.RevokedAt) }},
	}
}
