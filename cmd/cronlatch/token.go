package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/locking"
)

func (a *app) tokenCommand() *cobra.Command {
	return groupCommand("token", "Make, list and revoke the tokens of the HTTP API",
		"  $ cronlatch token create ci --role locker --prefix deploy: --expires 90d\n  $ cronlatch token list",
		a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRevokeCommand())
}

// life is a flag that takes how long something lasts.
type life struct{ d *time.Duration }

func (life) String() string { return "" }

// Type is what the help shows.
func (life) Type() string { return "duration" }

func (l life) Set(text string) error {
	d, err := configs.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a duration like 12h, 90d or 52w", text)
	}
	*l.d = d
	return nil
}

// newToken is what token create was told.
type newToken struct {
	id      string
	role    auth.Role
	prefix  string
	life    time.Duration
	replace bool
}

func (a *app) tokenCreateCommand() *cobra.Command {
	var t newToken
	var forConfig bool
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Make a token, print it once, and store its hash in the database",
		Long: "token create prints the token on stdout, once: only its hash is kept. It returns when every replica knows it.\n" +
			"The roles: viewer reads; locker takes, renews, releases and reads locks whose names begin with --prefix; operator\n" +
			"reads, triggers and pauses; admin may do everything. With --yaml nothing is stored: the token is on stderr, and what\n" +
			"belongs under auth.tokens in the configuration on stdout.",
		Example: "  $ cronlatch token create ci --role locker --prefix deploy: --expires 90d\n  $ cronlatch token create ops --role admin --yaml",
		Args:    oneArg("an id: who will use the token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.id = args[0]
			if err := t.check(); err != nil {
				return err
			}
			if forConfig {
				return a.printForConfig(t)
			}
			return a.createToken(cmd.Context(), t)
		},
	}
	flags := cmd.Flags()
	flags.Var(choice[auth.Role]{&t.role, auth.Roles()}, "role", "what the token allows (required)")
	flags.StringVar(&t.prefix, "prefix", "", "what the names of a locker's locks begin with (default every name)")
	flags.Var(life{&t.life}, "expires", "how long the token lives: 12h, 90d (default for ever)")
	flags.BoolVar(&t.replace, "replace", false, "take the place of the token with this id, revoked or not")
	flags.BoolVar(&forConfig, "yaml", false, "print an item for auth.tokens of the configuration, and store nothing")
	return cmd
}

func (t newToken) check() error {
	if _, err := auth.New(t.id); err != nil {
		return usage("%q cannot be an id: 1 to 32 characters of a-z, 0-9 and -", t.id)
	}
	switch {
	case t.role == "":
		return usage("token create needs --role: viewer, locker, operator or admin")
	case t.prefix != "" && t.role != auth.Locker:
		return usage("--prefix is for the role locker; it does not limit the role %s", t.role)
	case t.prefix != "" && locking.ValidateResource(t.prefix+"x") != nil: // a prefix may end anywhere
		return usage("--prefix %q begins no name that can be locked: %w", t.prefix, locking.ValidateResource(t.prefix+"x"))
	case t.id == auth.AdminID && t.role != auth.Admin:
		return usage("the id admin is that of the generated admin token; it has the role admin")
	default:
		return nil
	}
}

func (a *app) createToken(ctx context.Context, t newToken) error {
	if a.isConfigured(t.id) {
		return fail(exitFailure, "the configuration has a token with the id %s, and it would win", t.id).withHint("take another id")
	}
	token, err := auth.New(t.id)
	if err != nil {
		return err
	}
	err = a.withTokens(ctx, func(ctx context.Context, s *auth.Store) error {
		return s.Create(ctx, auth.Creation{
			ID: t.id, Hash: auth.Hash(token), Role: t.role, Prefix: t.prefix, Life: t.life, Replace: t.replace, Actor: requester(),
		})
	})
	if errors.Is(err, auth.ErrExists) {
		return fail(exitFailure, "there is a token with the id %s", t.id).withHint("--replace takes its place; `cronlatch token list` shows all")
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Stdout, token); err != nil {
		return err
	}
	a.say("this is shown once: give it to its user, as CRONLATCH_TOKEN or in the header Authorization: Bearer TOKEN")
	a.say("`cronlatch token revoke %s` ends it", t.id)
	return untilSeen(ctx) // so that the next line of a script can use it
}

// withTokens opens the table of the database that flags, environment and file name.
func (a *app) withTokens(ctx context.Context, f func(context.Context, *auth.Store) error) error {
	return a.withDatabase(ctx, func(ctx context.Context, db *database.DB) error {
		s, err := auth.OpenStore(db.Main)
		if err != nil {
			return err
		}
		return f(ctx, s)
	})
}

// isConfigured reports whether the configuration here has a token with the id. A configuration that is not there or not
// right does not matter to the database.
func (a *app) isConfigured(id string) bool {
	path, _ := a.configPath()
	if _, err := os.Stat(path); err != nil {
		return false
	}
	config, err := a.loadFile(path)
	return err == nil && slices.ContainsFunc(config.Auth.Tokens, func(t configs.Token) bool { return t.ID == id })
}
