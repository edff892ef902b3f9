package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// elsewhere are the statements that no daemon executes in the first seconds after it has found a wreck, each with the test
// that is about it.
func elsewhere() []string {
	return []string{
		"leave",             // when it leaves: TestDrainLetsJobsFinish
		"byOwner",           // after a COMMIT without an answer: scheduler's TestUnansweredClaimsAreSettledByReading
		"isJob", "jobNames", // in commands that work straight on the database, and they only read: TestPauseAndResume
	}
}

// recorded is what a daemon wrote about the points that it came by.
type recorded struct {
	known  []string       // statements, as the program has them
	points []string       // in the order in which they were reached first
	times  map[string]int // how often
}

func readRecord(t *testing.T, path string) recorded {
	t.Helper()
	r := recorded{times: map[string]int{}}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r
	}
	require.NoError(t, err)
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "known "); ok {
			r.known = append(r.known, name)
			continue
		}
		if !strings.Contains(line, ":") {
			continue // a place that is no statement's
		}
		if r.times[line] == 0 {
			r.points = append(r.points, line)
		}
		r.times[line]++
	}
	return r
}

// notExecuted are the statements that the daemon knows and has not come by, of those that it should.
func (r *recorded) notExecuted(should func(name string) bool) (list []string) {
	for _, name := range r.known {
		if should(name) && !slices.Contains(elsewhere(), name) && !slices.ContainsFunc(r.points, func(p string) bool { return isOf(p, name) }) {
			list = append(list, name)
		}
	}
	return list
}

// isOf: a point's statement may have several names.
func isOf(point, name string) bool {
	_, rest, _ := strings.Cut(point, ".")
	statement, _, _ := strings.Cut(rest, ":")
	return slices.Contains(strings.Split(statement, "+"), name)
}

// executed are the points that were passed n times at least, as the failpoint is told.
func (r *recorded) executed(n int) (list []string) {
	for _, p := range r.points {
		switch {
		case n == 1:
			list = append(list, p)
		case r.times[p] >= n:
			list = append(list, fmt.Sprintf("%s#%d", p, n))
		}
	}
	return list
}
