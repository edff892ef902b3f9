package locking

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

const liteUnit = time.Millisecond

// liteChunk is how many bytes of arguments one statement gets: bun inlines them, escapes can double them, and SQLite
// refuses statements above 1,000,000 bytes.
const liteChunk = 400_000

type sqlite struct{ session }

func newSQLite(db bun.IDB) *sqlite { return &sqlite{newSession(db, liteUnit)} }

// inTx runs f under the write lock: in the caller's transaction when there is one, else in its own.
func (s *sqlite) inTx(ctx context.Context, f func(ctx context.Context, s *sqlite) error) error {
	if s.tx {
		return f(ctx, s)
	}
	return s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return f(ctx, newSQLite(tx)) })
}

// Acquire looks first without the write lock: a loser must not write, nor make others wait for it.
func (s *sqlite) Acquire(ctx context.Context, reqs []AcquireRequest) (out []AcquireResult, err error) {
	seen, err := s.look(ctx, resourcesOf(reqs))
	if err != nil {
		return nil, fmt.Errorf("locking: acquire: %w", err)
	}
	if g := decide(reqs, seen, 0); len(g.grants) == 0 {
		return g.results, nil
	}
	err = s.inTx(ctx, func(ctx context.Context, s *sqlite) error {
		out, err = s.grant(ctx, reqs)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("locking: acquire: %w", err)
	}
	return out, nil
}

func resourcesOf(reqs []AcquireRequest) []string {
	names := make([]string, len(reqs))
	for i := range reqs {
		names[i] = reqs[i].Resource
	}
	return names
}

// granting is what was decided about a batch: the results so far, and the rows to write.
type granting struct {
	results []AcquireResult
	grants  []wireGrant
	last    int64 // the newest token
}

type wireGrant struct {
	wireRequest

	Token int64 `json:"k"`
}

// decide applies the rules to the rows as they are under the write lock. Tokens are above all earlier ones of every
// resource, and above what the row remembers even when the counter was set back.
func decide(reqs []AcquireRequest, seen map[string]*row, last int64) granting {
	g := granting{results: make([]AcquireResult, len(reqs)), last: last}
	for i, q := range reqs {
		res := &g.results[i]
		r := seen[q.Resource]
		if r != nil && !r.FreeFor(q) {
			res.Record = r.Record
			continue
		}
		res.Acquired = true
		token := g.last + 1
		if r != nil {
			res.Takeover, res.Extended = r.TakenOverBy(q), r.Extends(q)
			token = max(token, r.FencingToken+1)
		}
		if res.Extended {
			token = r.FencingToken
		} else {
			g.last = token
		}
		g.grants = append(g.grants, wireGrant{wireOf(q, liteUnit), token})
	}
	return g
}

func (s *sqlite) grant(ctx context.Context, reqs []AcquireRequest) ([]AcquireResult, error) {
	if _, err := s.db.ExecContext(ctx, liteLock); err != nil {
		return nil, err
	}
	var last, now int64
	if err := s.db.QueryRowContext(ctx, liteState).Scan(&last, &now); err != nil {
		return nil, err
	}
	seen, err := s.look(ctx, resourcesOf(reqs))
	if err != nil {
		return nil, err
	}
	for _, r := range seen {
		r.Now = instant(now, liteUnit) // one time for the whole decision
	}
	g := decide(reqs, seen, last)
	if err := s.write(ctx, g, now); err != nil {
		return nil, err
	}
	if g.last != last {
		_, err = s.db.ExecContext(ctx, liteSetToken, g.last)
	}
	return g.results, err
}

// write stores the grants and puts the rows into the results.
func (s *sqlite) write(ctx context.Context, g granting, now int64) error {
	size := func(w wireGrant) int { return len(w.Resource) + len(w.Owner) + len(w.Metadata) + 64 }
	rows, err := inChunks(g.grants, size, func(batch string) ([]row, error) {
		return s.query(ctx, liteGrant, batch, now)
	})
	if err != nil {
		return err
	}
	seen := byResource(rows)
	at := 0
	for i := range g.results {
		if g.results[i].Acquired {
			r, ok := seen[g.grants[at].Resource]
			if !ok {
				return fmt.Errorf("the grant of %q was not written", g.grants[at].Resource)
			}
			g.results[i].Record = r.Record
			at++
		}
	}
	return nil
}

// inChunks runs a statement as often as the size of its arguments demands.
func inChunks[T any](items []T, size func(T) int, run func(batch string) ([]row, error)) ([]row, error) {
	var out []row
	for len(items) > 0 {
		n, bytes := 1, size(items[0])
		for n < len(items) && bytes+size(items[n]) <= liteChunk {
			bytes += size(items[n])
			n++
		}
		batch, err := wire(items[:n])
		if err != nil {
			return nil, err
		}
		rows, err := run(batch)
		if err != nil {
			return nil, err
		}
		out, items = append(out, rows...), items[n:]
	}
	return out, nil
}

func (s *sqlite) look(ctx context.Context, names []string) (map[string]*row, error) {
	rows, err := inChunks(names, func(n string) int { return len(n) + 4 }, func(batch string) ([]row, error) {
		return s.query(ctx, liteLook, batch)
	})
	return byResource(rows), err
}

func (s *sqlite) Renew(ctx context.Context, claims []Claim) ([]ClaimResult, error) {
	done, err := s.change(ctx, claims, liteRenew)
	if err != nil {
		return nil, fmt.Errorf("locking: renew: %w", err)
	}
	out := make([]ClaimResult, len(claims))
	for i, c := range claims {
		out[i].Err = ErrLost
		if r := done[c.Resource]; r != nil {
			out[i] = ClaimResult{Record: r.Record}
		}
	}
	return out, nil
}

// Release reads the reason of each refusal afterwards; nobody can change a row between "not mine" and that look in a
// way that makes it mine.
func (s *sqlite) Release(ctx context.Context, claims []Claim) ([]ClaimResult, error) {
	done, err := s.change(ctx, claims, liteRelease)
	if err != nil {
		return nil, fmt.Errorf("locking: release: %w", err)
	}
	out := make([]ClaimResult, len(claims))
	var refused []string
	for i, c := range claims {
		if r := done[c.Resource]; r != nil {
			out[i].Record = r.Record
		} else {
			refused = append(refused, c.Resource)
		}
	}
	if len(refused) == 0 {
		return out, nil
	}
	seen, err := s.look(ctx, refused)
	if err != nil {
		return nil, fmt.Errorf("locking: release: read the holders: %w", err)
	}
	for i, c := range claims {
		if done[c.Resource] == nil {
			out[i] = refusal(seen[c.Resource], c)
		}
	}
	return out, nil
}

// change runs a renewal or a release: one statement, or one for each chunk in a transaction of its own.
func (s *sqlite) change(ctx context.Context, claims []Claim, query string) (map[string]*row, error) {
	size := func(w wireClaim) int { return len(w.Resource) + len(w.Owner) + 64 }
	rows, err := inChunks(sortedClaims(claims, liteUnit), size, func(batch string) ([]row, error) {
		return s.query(ctx, query, batch)
	})
	return byResource(rows), err
}

func (s *sqlite) Get(ctx context.Context, resource string) (Record, error) {
	seen, err := s.look(ctx, []string{resource})
	if err != nil {
		return Record{}, fmt.Errorf("locking: get %q: %w", resource, err)
	}
	return getAnswer(seen[resource], resource)
}

func (s *sqlite) List(ctx context.Context, f ListFilter) ([]Record, error) {
	state := liteLive
	if f.State == StateExpired {
		state = liteAbandoned
	}
	from, to := rangeOf(f.Prefix)
	rows, err := s.query(ctx, fmt.Sprintf(liteList, state), from, to, f.After, f.Owner, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("locking: list: %w", err)
	}
	return records(rows), nil
}

func (s *sqlite) ForceRelease(ctx context.Context, f Force) (Record, error) {
	rows, err := s.force(ctx, f)
	if err == nil && len(rows) == 0 {
		var seen map[string]*row
		if seen, err = s.look(ctx, []string{f.Resource}); seen[f.Resource] != nil {
			rows = []row{*seen[f.Resource]}
		}
	}
	if err != nil {
		return Record{}, fmt.Errorf("locking: force-release %q: %w", f.Resource, err)
	}
	return forceAnswer(rows, f)
}

// force ends the grant and notes it, in one transaction.
func (s *sqlite) force(ctx context.Context, f Force) (rows []row, err error) {
	err = s.inTx(ctx, func(ctx context.Context, s *sqlite) error {
		if rows, err = s.query(ctx, liteForce, f.Resource, f.FencingToken, f.Immediate); err != nil || len(rows) == 0 {
			return err
		}
		r := &rows[0]
		_, err = s.db.ExecContext(ctx, liteNoteForce, f.Actor, r.Resource, r.Owner, r.FencingToken, f.Replica, f.Reason, f.Immediate)
		return err
	})
	return rows, err
}

func (s *sqlite) Purge(ctx context.Context, olderThan time.Duration, limit int) (int, error) {
	res, err := s.db.ExecContext(ctx, litePurge, olderThan.Milliseconds(), limit)
	return purgeAnswer(res, err)
}

func (s *sqlite) Now(ctx context.Context) (time.Time, error) {
	return s.clock(ctx, liteClock)
}
