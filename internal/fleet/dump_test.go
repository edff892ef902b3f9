package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/jobs"
)

const (
	dumpedLines = 150
	dumpedRuns  = 60
)

// dump prints the logs and the ledger of a test that has failed.
func (f *Fleet) dump() {
	for _, r := range f.Replicas() {
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(r.Log()), "\n"), routine)
		from := max(0, len(lines)-dumpedLines)
		f.tb.Logf("--- %s (exit code %d), the last %d of %d remarkable lines:\n%s", filepath.Base(r.log), r.code, len(lines)-from, len(lines),
			strings.Join(lines[from:], "\n"))
	}
	runs, err := f.runs()
	if err != nil {
		f.tb.Logf("--- the ledger: %v", err)
		return
	}
	f.tb.Logf("--- the newest %d of %d runs:", min(len(runs), dumpedRuns), len(runs))
	for i := range runs[:min(len(runs), dumpedRuns)] {
		f.tb.Log(describe(&runs[i]))
	}
}

// routine is what a busy fleet says sixty times a second.
func routine(line string) bool {
	for _, message := range []string{"run plan", "run claim", "run start", "run finish", "lock acquire", "lock release", "run skip"} {
		if strings.Contains(line, `"info"`) && strings.Contains(line, `"msg":"`+message+`"`) {
			return true
		}
	}
	return false
}

func describe(r *jobs.Run) string {
	text := fmt.Sprintf("run %d %s %s attempt %d token %d: %s %s %s on %s %s", r.ID, r.Job, r.Occurrence, r.Attempt, r.FencingToken,
		r.State, r.Outcome, r.Reason, r.Replica, r.Detail)
	if r.StartedAt != nil {
		text += " started " + r.StartedAt.Format("15:04:05.000")
	}
	if r.FinishedAt != nil {
		text += " finished " + r.FinishedAt.Format("15:04:05.000")
	}
	return text
}
