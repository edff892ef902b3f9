package auth

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/failpoint"
)

// ErrExists says that there is a token with this id already.
var ErrExists = errors.New("auth: there is a token with this id")

// Entry is what is known of a token: everything but its secret.
type Entry struct {
	ID        string
	Hash      string // "" matches nothing: the entry only revokes
	Role      Role
	Prefix    string
	CreatedAt time.Time
	ExpiresAt time.Time // zero is never
	RevokedAt time.Time // zero is not
}

// Snapshot is the table at one instant.
type Snapshot struct {
	Now     time.Time // the database's clock
	Entries []Entry   // in the order of their ids
}

// Store is the table of tokens in one database. Times are the database's.
type Store struct {
	db bun.IDB
	q  *queries
}

// queries is the SQL of one database; the texts are in postgres.go and sqlite.go.
type queries struct {
	load    string
	insert  string // id, hash, role, prefix, life in ms or NULL; writes nothing when the id is there
	replace string // the same
	revoke  string // id; inserts a row that only revokes when there is none
	audit   string // action, actor's type, actor, id
}

// OpenStore returns the store of a migrated database.
func OpenStore(db bun.IDB) (*Store, error) {
	switch name := db.Dialect().Name(); name {
	case dialect.PG:
		failpoint.Statements(&postgresQueries)
		return &Store{db, &postgresQueries}, nil
	case dialect.SQLite:
		failpoint.Statements(&sqliteQueries)
		return &Store{db, &sqliteQueries}, nil
	default:
		return nil, fmt.Errorf("auth: no token store for dialect %v", name)
	}
}

type entryRow struct {
	Now       dbtime.Time `bun:"now"`
	ID        *string     `bun:"id"` // NULL: the table is empty
	Hash      string      `bun:"hash"`
	Role      string      `bun:"role"`
	Prefix    string      `bun:"prefix"`
	CreatedAt dbtime.Time `bun:"created_at"`
	ExpiresAt dbtime.Time `bun:"expires_at"`
	RevokedAt dbtime.Time `bun:"revoked_at"`
}

// Load reads the whole table. It is small: tokens are made by people.
func (s *Store) Load(ctx context.Context) (Snapshot, error) {
	var rows []entryRow
	if err := s.db.NewRaw(s.q.load).Scan(ctx, &rows); err != nil {
		return Snapshot{}, fmt.Errorf("reading the tokens: %w", err)
	}
	var out Snapshot
	for i := range rows {
		r := &rows[i]
		out.Now = r.Now.Time
		if r.ID != nil {
			out.Entries = append(out.Entries, Entry{
				ID: *r.ID, Hash: r.Hash, Role: Role(r.Role), Prefix: r.Prefix,
				CreatedAt: r.CreatedAt.Time, ExpiresAt: r.ExpiresAt.Time, RevokedAt: r.RevokedAt.Time,
			})
		}
	}
	return out, nil
}

// Creation is a token that shall be there.
type Creation struct {
	ID, Hash string
	Role     Role
	Prefix   string
	Life     time.Duration // from now on; 0 has no end
	Replace  bool          // an existing one, revoked or not; otherwise that is ErrExists
	Actor    string        // who makes it, for the audit: user@host

	replica bool // Actor is a replica's name
}

// Create inserts a token and notes it in the audit table, in one transaction.
func (s *Store) Create(ctx context.Context, c Creation) error {
	if err := c.check(); err != nil {
		return err
	}
	query := s.q.insert
	if c.Replace {
		query = s.q.replace
	}
	var life any
	if c.Life > 0 {
		life = dbtime.Millis(c.Life)
	}
	return s.inTx(ctx, "creating a token", func(ctx context.Context, tx bun.Tx) error {
		n, err := affected(tx.NewRaw(query, c.ID, c.Hash, string(c.Role), c.Prefix, life).Exec(ctx))
		switch {
		case err != nil:
			return err
		case n == 0:
			return ErrExists
		default:
			return s.note(ctx, tx, "token.create", c.actor(), c.ID)
		}
	})
}

func (c Creation) check() error {
	switch {
	case !idForm.MatchString(c.ID):
		return ErrID
	case !hashForm.MatchString(c.Hash):
		return errors.New("auth: not a hash")
	case !c.Role.valid():
		return fmt.Errorf("auth: there is no role %q", c.Role)
	case c.Prefix != "" && c.Role != Locker:
		return fmt.Errorf("auth: a prefix does not limit the role %s", c.Role)
	case c.Life < 0:
		return errors.New("auth: a token cannot end before it begins")
	default:
		return nil
	}
}

// Revoke ends a token for good, and notes it in the audit table, in one transaction. Without a row it makes one that
// revokes a token of that id in any configuration.
func (s *Store) Revoke(ctx context.Context, id, actor string) error {
	if !idForm.MatchString(id) {
		return ErrID
	}
	return s.inTx(ctx, "revoking a token", func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewRaw(s.q.revoke, id).Exec(ctx); err != nil {
			return err
		}
		return s.note(ctx, tx, "token.revoke", [2]string{"user", actor}, id)
	})
}

// actor is the type and the id of who makes the token.
func (c Creation) actor() [2]string {
	if c.replica {
		return [2]string{"replica", c.Actor}
	}
	return [2]string{"user", c.Actor}
}

// note writes the audit row.
func (s *Store) note(ctx context.Context, tx bun.Tx, action string, actor [2]string, id string) error {
	_, err := tx.NewRaw(s.q.audit, action, actor[0], actor[1], id).Exec(ctx)
	return err
}

func (s *Store) inTx(ctx context.Context, what string, f func(context.Context, bun.Tx) error) error {
	err := s.db.RunInTx(ctx, nil, f)
	if err != nil && !errors.Is(err, ErrExists) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return err
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
