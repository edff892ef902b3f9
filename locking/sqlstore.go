package locking

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// NewStore returns the store of db's dialect, PostgreSQL or SQLite; the tables are those of package migrations. db may
// be a transaction: then nothing is committed here, and the grant is real only when the caller's commit is. A
// transaction should be READ COMMITTED on PostgreSQL (under the stricter levels plain contention is an error) and
// started with BEGIN IMMEDIATE on SQLite.
func NewStore(db bun.IDB) (Store, error) {
	switch name := db.Dialect().Name(); name {
	case dialect.PG:
		if native(db) == nil {
			return nil, invalid("database", "%T is none of *bun.DB, bun.Conn and bun.Tx", db)
		}
		return Checked(newPostgres(db)), nil
	case dialect.SQLite:
		return Checked(newSQLite(db)), nil
	default:
		return nil, invalid("database", "dialect %s is not supported", name)
	}
}

// Open starts a Locker on db, whose tables must exist (package migrations). It does not wait for the database. Close
// ends its goroutine.
//
// On PostgreSQL the sessions of db should be READ COMMITTED, which is the server's default unless somebody changed it:
// under the stricter levels plain contention is an error, which leaves the outcome of a call unknown. pgdriver sets it
// with WithConnParams(map[string]any{"default_transaction_isolation": "read committed"}). A call of pgdriver alone ends
// by its own read timeout, and not with its context.
func Open(db *bun.DB, opts ...Option) (*Locker, error) {
	store, err := NewStore(db)
	if err != nil {
		return nil, err
	}
	return OpenStore(store, opts...)
}

// RenewOn sends renewals through another pool than everything else, so that a saturated one loses no lock.
func RenewOn(db *bun.DB) Option {
	return func(c *openConfig) (err error) {
		c.renewals, err = NewStore(db)
		return err
	}
}

// wireRequest and wireClaim are what the statements read: one JSON array is one argument, whatever a name contains,
// and a batch of 10,000 is no longer statement text than it must be. Durations are in the database's unit.
type wireRequest struct {
	Resource  string `json:"r"`
	Owner     string `json:"o"`
	Principal string `json:"p"`
	TTL       int64  `json:"t"`
	Grace     int64  `json:"g"`
	Metadata  string `json:"m"`
}

type wireClaim struct {
	Resource  string `json:"r"`
	Owner     string `json:"o"`
	Principal string `json:"p"`
	Token     int64  `json:"k"` // 0 is any
	TTL       int64  `json:"t"`
}

// units converts a duration up to the next unit of the database: a lock must not end before its owner thinks.
func units(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

// wire encodes values for a statement.
func wire(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("locking: encode the batch: %w", err)
	}
	return b.String(), nil
}

// sortedClaims returns the claims in ascending byte order of their resources, the one order in which rows are locked.
func sortedClaims(claims []Claim, unit time.Duration) []wireClaim {
	out := make([]wireClaim, len(claims))
	for i, c := range claims {
		out[i] = wireClaim{c.Resource, c.Owner, c.Principal, c.FencingToken, units(c.TTL, unit)}
	}
	slices.SortFunc(out, func(a, b wireClaim) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

func sortedRequests(reqs []AcquireRequest, unit time.Duration) []wireRequest {
	out := make([]wireRequest, len(reqs))
	for i, q := range reqs {
		out[i] = wireOf(q, unit)
	}
	slices.SortFunc(out, func(a, b wireRequest) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

func wireOf(q AcquireRequest, unit time.Duration) wireRequest {
	return wireRequest{q.Resource, q.Owner, q.Principal, units(q.TTL, unit), units(q.Grace, unit), string(q.Metadata)}
}

// row is one line of every statement's answer: the record, whether the statement wrote it, and (acquire on PostgreSQL)
// what it replaced.
type row struct {
	Record

	done     bool
	replaced sql.NullString
}

// session is a database, or a transaction in it, and how it keeps time.
type session struct {
	db   bun.IDB
	run  runner // what statements with arguments are given to
	unit time.Duration
	tx   bool // db is the caller's transaction
}

// runner is database/sql's half of a bun.IDB.
type runner interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func newSession(db bun.IDB, unit time.Duration) session {
	_, tx := db.(bun.Tx)
	return session{db, db, unit, tx}
}

// exec runs a statement without an answer.
func (s session) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return s.run.ExecContext(ctx, query, args...)
}

// native is what is below bun, which would write the arguments into the text; the driver may prepare statements that come
// to it with arguments.
func native(db bun.IDB) runner {
	switch db := db.(type) {
	case *bun.DB:
		return db.DB
	case bun.Conn:
		return db.Conn
	case bun.Tx:
		return db.Tx
	default:
		return nil
	}
}

// query runs a statement whose columns are
// done, replaced, id, resource, owner, principal, fencing_token, acquired_at, renewed_at, expires_at, released_at, metadata, now;
// times are integers in the database's unit, so that no session's TimeZone or DateStyle can change them.
func (s session) query(ctx context.Context, query string, args ...any) (_ []row, err error) {
	rows, err := s.run.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	var out []row
	for rows.Next() {
		r, err := scanRow(rows, s.unit)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

func scanRow(rows *sql.Rows, unit time.Duration) (row, error) {
	var (
		r                               row
		acquired, renewed, expires, now int64
		released                        sql.NullInt64
		metadata                        string
	)
	err := rows.Scan(&r.done, &r.replaced, &r.ID, &r.Resource, &r.Owner, &r.Principal, &r.FencingToken,
		&acquired, &renewed, &expires, &released, &metadata, &now)
	if err != nil {
		return row{}, err
	}
	r.AcquiredAt, r.RenewedAt = instant(acquired, unit), instant(renewed, unit)
	r.ExpiresAt, r.Now = instant(expires, unit), instant(now, unit)
	if released.Valid {
		at := instant(released.Int64, unit)
		r.ReleasedAt = &at
	}
	r.Metadata = json.RawMessage(metadata)
	return r, nil
}

func instant(n int64, unit time.Duration) time.Time {
	perSecond := int64(time.Second / unit)
	s, rest := n/perSecond, n%perSecond
	return time.Unix(s, rest*int64(unit)).UTC()
}

// byResource indexes an answer.
func byResource(rows []row) map[string]*row {
	m := make(map[string]*row, len(rows))
	for i := range rows {
		m[rows[i].Resource] = &rows[i]
	}
	return m
}

// records drops what only the store needs.
func records(rows []row) []Record {
	out := make([]Record, len(rows))
	for i := range rows {
		out[i] = rows[i].Record
	}
	return out
}

// rangeOf is the range of names that start with prefix, in byte order. The highest character repeated as often as a
// name can be long is above every continuation, and is valid text where the successor of the last byte may not be.
func rangeOf(prefix string) (from, to string) {
	return prefix, prefix + strings.Repeat("\U0010FFFF", MaxOwnerBytes/utf8Max)
}

const utf8Max = 4 // bytes of the highest character

// clock reads one integer time.
func (s session) clock(ctx context.Context, query string) (time.Time, error) {
	var n int64
	if err := s.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		return time.Time{}, fmt.Errorf("locking: read the database's clock: %w", err)
	}
	return instant(n, s.unit), nil
}

// forceAnswer turns the row that a force-release saw, or none, into its answer.
func forceAnswer(rows []row, f Force) (Record, error) {
	switch {
	case len(rows) == 0 || (!rows[0].done && !rows[0].Live()):
		return Record{}, fmt.Errorf("force-release %q: %w", f.Resource, ErrNotFound)
	case !rows[0].done && rows[0].FencingToken == f.FencingToken: // it ended while the statement waited for it
		return Record{}, fmt.Errorf("force-release %q: %w", f.Resource, ErrNotFound)
	case !rows[0].done:
		return rows[0].Record, fmt.Errorf("force-release %q: %w", f.Resource, ErrStaleToken)
	}
	return rows[0].Record, nil
}

// parseReplaced reads "id token takeover" as the PostgreSQL upsert notes it about the row that it overwrote. The note
// of another row is no note: then the row was inserted.
func (r *row) parseReplaced() (token int64, takeover, ok bool) {
	parts := strings.Fields(r.replaced.String)
	if len(parts) != 3 || parts[0] != strconv.FormatInt(r.ID, 10) {
		return 0, false, false
	}
	token, err := strconv.ParseInt(parts[1], 10, 64)
	return token, parts[2] == "t", err == nil
}

func getAnswer(r *row, resource string) (Record, error) {
	if r == nil || !r.Live() {
		return Record{}, fmt.Errorf("get %q: %w", resource, ErrNotFound)
	}
	return r.Record, nil
}

func purgeAnswer(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, fmt.Errorf("locking: purge: %w", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("locking: purge: count the rows: %w", err)
	}
	return int(n), nil
}

// refusal says why a row, as it is now, was not released. A row that could have been is a contradiction that only a
// clock stepping back explains.
func refusal(r *row, c Claim) ClaimResult {
	if r == nil {
		return ClaimResult{Err: ErrNotFound}
	}
	err := r.Releasable(c)
	if err == nil {
		err = fmt.Errorf("%w: release %q", ErrUnknown, c.Resource)
	}
	return ClaimResult{Err: err, Record: r.Record}
}
