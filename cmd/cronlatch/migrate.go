package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/migrations"
)

func (a *app) migrateCommand() *cobra.Command {
	return groupCommand("migrate", "Look at the database's schema, or bring it up", "  $ cronlatch migrate status\n  $ cronlatch migrate up",
		a.migrateUpCommand(), a.migrateStatusCommand())
}

// migrationPatience is longer than that of other commands: a migration of a large table may take its time. Reaching
// the database may not.
const migrationPatience = time.Hour

func (a *app) migrateUpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "up",
		Short:   "Apply what is missing; safe to run from many places at once",
		Example: "  $ cronlatch migrate up --database-url postgres://admin@db/cronlatch",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withBareDatabase(cmd.Context(), a.migrateUp)
		},
	}
}

func (a *app) migrateStatusCommand() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "List the migrations, applied or not",
		Example: "  $ cronlatch migrate status",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withBareDatabase(cmd.Context(), func(ctx context.Context, db *database.DB) error {
				return a.migrateStatus(ctx, db, format)
			})
		},
	}
	addOutput(cmd, &format, listFormats()...)
	return cmd
}

// withBareDatabase opens the database as it is, whatever its schema, and makes sure that it answers.
func (a *app) withBareDatabase(ctx context.Context, f func(context.Context, *database.DB) error) error {
	target, err := a.target()
	if err != nil {
		return err
	}
	db, err := database.Open(target, database.Options{AppName: "cronlatch migrate", StatementTimeout: migrationPatience})
	if err != nil {
		return &failure{code: exitConfig, err: err}
	}
	if err = a.ping(ctx, db); err == nil {
		err = f(ctx, db)
	}
	return errors.Join(a.explain(ctx, target, err), db.Close())
}

func (a *app) ping(ctx context.Context, db *database.DB) error {
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	return whileBusy(ctx, func(ctx context.Context) error {
		if err := db.Main.PingContext(ctx); err != nil {
			return fmt.Errorf("asking for an answer: %w", err)
		}
		return nil
	})
}

func (a *app) migrateUp(ctx context.Context, db *database.DB) error {
	before, err := applied(ctx, db)
	if err != nil {
		return err
	}
	if err = migrations.Up(ctx, db.Main); err != nil {
		return err
	}
	after, err := applied(ctx, db)
	if err != nil {
		return err
	}
	if after == before {
		a.say("the schema is up to date at migration %d; nothing was done", after)
		return nil
	}
	a.say("applied %s; the schema is at migration %d", counted(after-before, "migration"), after)
	return nil
}

// applied is how many migrations the database has.
func applied(ctx context.Context, db *database.DB) (int, error) {
	list, err := migrations.Status(ctx, db.Main)
	n := 0
	for _, m := range list {
		if m.AppliedAt != nil {
			n++
		}
	}
	return n, err
}

// migrationView is a migration as commands print it.
type migrationView struct {
	Version   int        `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"` // null: pending
}

func (a *app) migrateStatus(ctx context.Context, db *database.DB, format output.Format) error {
	list, err := migrations.Status(ctx, db.Main)
	if err != nil {
		return err
	}
	views := make([]migrationView, len(list))
	for i, m := range list {
		views[i] = migrationView{m.Version, m.Name, wire.UTCOrNull(m.AppliedAt)}
	}
	if err := output.Write(a.answer(format), output.List[migrationView]{
		Items: views,
		Name:  func(v migrationView) string { return strconv.Itoa(v.Version) },
		Columns: []output.Column[migrationView]{
			{Title: "VERSION", Cell: func(v migrationView) string { return strconv.Itoa(v.Version) }, Right: true},
			{Title: "NAME", Cell: func(v migrationView) string { return v.Name }},
			{Title: "APPLIED", Cell: func(v migrationView) string {
				if v.AppliedAt == nil {
					return "pending"
				}
				return stamp(*v.AppliedAt)
			}},
		},
	}); err != nil {
		return err
	}
	switch err := migrations.Check(ctx, db.Main); {
	case errors.Is(err, migrations.ErrPending):
		a.say("`cronlatch migrate up` applies what is pending")
		return nil
	default:
		return err
	}
}
