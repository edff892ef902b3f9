package scheduler

import "slices"

// piece is how many schedules one plan takes: all that are due, as long as the database manages that within opTimeout. What it
// does not manage is tried with half as many, and with more again when that goes well. A backlog that is only tried as a whole
// grows while it is tried, and would never be planned.
type piece struct{ most int } // 0 is all

// of are the schedules of the next plan: when not all are, those that are furthest behind, so that each has its turn.
func (p *piece) of(due []*planned) []*planned {
	if p.most == 0 || len(due) <= p.most {
		return due
	}
	slices.SortStableFunc(due, func(a, b *planned) int { return a.next.Compare(b.next) })
	return due[:p.most]
}

// tried learns from a plan of n schedules.
func (p *piece) tried(n int, err error) {
	switch {
	case err != nil:
		p.most = max(1, n/2)
	case n < p.most: // nothing was left
		p.most = 0
	default:
		p.most *= 2
	}
}
