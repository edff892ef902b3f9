package explain

import (
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// Summary is the range of a row that stands for many instants; false when it stands for one.
func Summary(r *jobs.Run) (from, until time.Time, n int64, ok bool) {
	d := read(r.Detail)
	from, until, n = d.instant("missed_from"), d.instant("missed_until"), d.number("missed_count")
	return from, until, n, n > 0 && !from.IsZero() && !until.IsZero()
}

// Mentioned are the runs that the detail of a run names, and what it came after.
func Mentioned(r *jobs.Run) (ids []int64) {
	d := read(r.Detail)
	for _, key := range []string{"unfinished_run", "replaced_by", "succeeded_run"} {
		if id := d.number(key); id > 0 {
			ids = append(ids, id)
		}
	}
	if id := read(r.CancelDetail).number("replaced_by"); id > 0 {
		ids = append(ids, id)
	}
	return ids
}
