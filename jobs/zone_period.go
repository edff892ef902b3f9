package jobs

import (
	"math"
	"time"
)

// period is a stretch of time during which a zone's offset does not change.
type period struct {
	start, end int64 // seconds since the epoch, [start, end); the extremes of int64 where a zone has no change
	offset     int64 // seconds east of UTC
	before     int64 // the offset before start; the same as offset when there is none
}

// endLocal is the local time at which the period ends.
func (p period) endLocal() int64 {
	if p.end == math.MaxInt64 {
		return p.end
	}
	return p.end + p.offset
}

// periodAt finds the period around an instant. It does not trust time.ZoneBounds alone: for instants that only the rule
// at the end of a zone's data describes, that function cuts years at 365 days, so that a bound can be no change of the
// offset, and on the last day of a leap year the end lies before the instant. Both made a search go round for ever.
func periodAt(loc *time.Location, at int64) period {
	p := period{start: math.MinInt64, end: math.MaxInt64, offset: offsetAt(loc, at)}
	p.before = p.offset
	for bound, tries := at, 0; ; tries++ {
		start, _ := time.Unix(bound, 0).In(loc).ZoneBounds()
		if start.IsZero() {
			break
		}
		bound = start.Unix() - 1
		if before := offsetAt(loc, bound); before != p.offset || tries == triesToExtend {
			p.start, p.before = bound+1, before
			break
		}
	}
	for bound, tries := at, 0; ; tries++ {
		_, end := time.Unix(bound, 0).In(loc).ZoneBounds()
		if end.IsZero() {
			break
		}
		bound = behind(end.Unix(), bound)
		if offsetAt(loc, bound) != p.offset || tries == triesToExtend {
			p.end = bound
			break
		}
	}
	return p
}

// triesToExtend bounds the merging of stretches with the same offset. A bound without a change does no harm.
const triesToExtend = 8

// behind repairs an end that is not after the instant: the last day of a leap year ends a day later.
func behind(end, at int64) int64 {
	if end <= at {
		return at - floorMod(at, secondsPerDay) + secondsPerDay
	}
	return end
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

func offsetAt(loc *time.Location, at int64) int64 {
	_, offset := time.Unix(at, 0).In(loc).Zone()
	return int64(offset)
}
