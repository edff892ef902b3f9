package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"github.com/cronlatch/cronlatch/jobs"
)

// followBatch is how many ended runs one transaction looks at.
const followBatch = 100

// followed is what one look at ended runs has found.
type followed struct {
	rows  []jobs.Run // of the jobs that come after them
	more  bool       // there may be further ended runs
	stale []jobs.Run // those that nobody knew a follower of for a day; nothing follows them
}

// followUp looks what comes after runs that have ended: it inserts the rows of their followers and clears the mark (follow)
// that somebody has to look, in one transaction. Runs whose followers this replica does not know are left to one that does,
// for a day; then their mark is cleared.
//
// Of two runs that one job waits for, each may be looked at by another replica at the same moment. Whichever looks later
// sees both: a run gets here when its end is committed, so the later look is later than both ends. It must therefore be a
// statement of its own, after the one that took the rows. When both see both, the second insert does nothing.
func (s *store) followUp(ctx context.Context, f followers) (found followed, err error) {
	err = s.tx(ctx, func(tx bun.Tx) error {
		found, err = s.followIn(ctx, tx, f)
		return err
	})
	if err != nil {
		return followed{}, fmt.Errorf("looking what follows: %w", err)
	}
	return found, nil
}

func (s *store) followIn(ctx context.Context, tx bun.Tx, f followers) (found followed, err error) {
	names := slices.AppendSeq([]string{}, maps.Keys(f)) // not nil, which would be JSON's null
	ended, err := jobs.ScanRuns(ctx, tx.NewRaw(s.q.followed, encode(names), followBatch))
	if err != nil {
		return found, fmt.Errorf("selecting runs that are followed: %w", err)
	}
	if len(ended) == 0 {
		return found, nil
	}
	found.more = len(ended) == followBatch
	ids := make([]int64, len(ended))
	for i := range ended {
		ids[i] = ended[i].ID
		if f[ended[i].Job] == nil {
			found.stale = append(found.stale, ended[i])
		}
	}
	last, err := s.lastAttempts(ctx, tx, ids, ended)
	if err != nil {
		return found, err
	}
	rows, err := s.following(ctx, tx, f, last)
	if err != nil {
		return found, err
	}
	if found.rows, err = s.insertRuns(ctx, tx, rows); err != nil {
		return found, err
	}
	if _, err := tx.NewRaw(s.q.unmarkFollow, encode(ids)).Exec(ctx); err != nil {
		return found, fmt.Errorf("unmarking runs that were followed: %w", err)
	}
	return found, nil
}

// lastAttempts leaves out the runs that another attempt came after, whatever has become of that: it decides.
func (s *store) lastAttempts(ctx context.Context, tx bun.Tx, ids []int64, ended []jobs.Run) ([]jobs.Run, error) {
	var repeated []replacedRow
	if err := tx.NewRaw(s.q.repeated, encode(ids)).Scan(ctx, &repeated); err != nil {
		return nil, fmt.Errorf("looking for further attempts: %w", err)
	}
	return slices.DeleteFunc(ended, func(r jobs.Run) bool {
		return slices.ContainsFunc(repeated, func(a replacedRow) bool { return a.ID == r.ID })
	}), nil
}

// following are the rows that come after the runs, in the order in which everybody inserts.
func (s *store) following(ctx context.Context, tx bun.Tx, f followers, ended []jobs.Run) ([]jobs.NewRun, error) {
	var rows []jobs.NewRun
	waiting := map[*follower]map[meeting]bool{}
	for i := range ended {
		run := &ended[i]
		for _, next := range f[run.Job] {
			if len(next.job.After) == 1 {
				rows = append(rows, next.after(run)...)
			} else if m, ok := next.meets(run); ok {
				if waiting[next] == nil {
					waiting[next] = map[meeting]bool{}
				}
				waiting[next][m] = true
			}
		}
	}
	all, err := s.endedOf(ctx, tx, waiting)
	if err != nil {
		return nil, err
	}
	for next, meetings := range waiting {
		for m := range meetings {
			rows = append(rows, next.afterAll(m, all[m])...)
		}
	}
	slices.SortFunc(rows, func(a, b jobs.NewRun) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Occurrence, b.Occurrence))
	})
	return rows, nil
}

// meetingKey asks for the run of a job that takes part in a meeting.
type meetingKey struct {
	Job        string `json:"job"`
	Occurrence string `json:"occurrence"`
	Period     string `json:"period"`
}

// endedOf reads which runs have ended of those that followers of several jobs wait for. When several runs of a job have the
// same period, the first one that ended counts.
func (s *store) endedOf(ctx context.Context, tx bun.Tx, waiting map[*follower]map[meeting]bool) (map[meeting]map[string]*jobs.Run, error) {
	keys := map[meetingKey]bool{}
	for next, meetings := range waiting {
		for m := range meetings {
			for _, a := range next.job.After {
				keys[meetingKey{a.Job, m.Occurrence, m.Period}] = true
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	doc := encode(slices.Collect(maps.Keys(keys)))
	runs, err := jobs.ScanRuns(ctx, tx.NewRaw(s.q.upstream, doc, doc))
	if err != nil {
		return nil, fmt.Errorf("reading the runs that are waited for: %w", err)
	}
	all := map[meeting]map[string]*jobs.Run{}
	for i := range runs {
		r := &runs[i]
		for _, m := range []meeting{{Occurrence: r.Occurrence}, {Period: r.Period}} {
			if keys[meetingKey{r.Job, m.Occurrence, m.Period}] {
				if all[m] == nil {
					all[m] = map[string]*jobs.Run{}
				}
				all[m][r.Job] = r
			}
		}
	}
	return all, nil
}
