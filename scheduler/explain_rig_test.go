package scheduler

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/jobs"
)

//nolint:gochecknoglobals // a flag
var updateStories = flag.Bool("update-stories", false, "write the stories of the scenarios anew")

// storiesDir has a file for each scenario.
const storiesDir = "../internal/explain/testdata"

// asked is a scenario of the real loop, and what is asked in its end.
type asked struct {
	policyCase
	ask func(s *stage) ExplainRequest // nil: about the first job, now
}

// about asks for a job, at an instant or now.
func about(job, at string) func(*stage) ExplainRequest {
	return func(*stage) ExplainRequest { return ExplainRequest{Job: job, At: at} }
}

// run asks for the first run with a reason.
func run(reason jobs.Reason) func(*stage) ExplainRequest {
	return func(s *stage) ExplainRequest {
		ledger, err := jobs.OpenLedger(s.db.Main)
		require.NoError(s.t, err)
		runs, err := ledger.List(s.t.Context(), jobs.RunFilter{Limit: 10_000})
		require.NoError(s.t, err)
		id := int64(0)
		for _, r := range runs {
			if r.Reason == reason {
				id = r.ID
			}
		}
		require.NotZero(s.t, id, "no run with the reason %q", reason)
		return ExplainRequest{RunID: id}
	}
}

// tellAll plays each scenario in a bubble of its own, and compares the story with its file.
func tellAll(t *testing.T, scenarios map[string]asked) {
	t.Helper()
	for name, c := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := raise(t, &c.policyCase)
				time.Sleep(s.idle())
				s.join("a")
				for _, step := range c.steps { // between two looks of a replica, which come each second
					time.Sleep(time.Until(s.began.Add(step.at + 170*time.Millisecond)))
					step.do(s)
				}
				time.Sleep(time.Until(s.began.Add(c.until + 333*time.Millisecond))) // when no timer of a replica ends
				synctest.Wait()
				r := ExplainRequest{Job: s.known[0].Name}
				if c.ask != nil {
					r = c.ask(s)
				}
				r.Known = s.known
				story, err := Explain(t.Context(), s.db.Main, r)
				require.NoError(t, err)
				sameStory(t, name, story)
				s.assertCounted()
				s.clear()
			})
		})
	}
}

func sameStory(t *testing.T, name string, story *explain.Story) {
	t.Helper()
	told := storyText(story)
	assert.NotContains(t, told, "{", "no sentence has raw JSON")
	path := filepath.Join(storiesDir, strings.ReplaceAll(name, " ", "-")+".txt")
	if *updateStories {
		require.NoError(t, os.WriteFile(path, []byte(told), 0o600))
		return
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(golden), told, "-update-stories writes %s anew; read it", path)
}

// storyText begins with outcome and reason, which the test of package explain counts.
func storyText(s *explain.Story) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n\n", strings.TrimSpace(fmt.Sprintf("# %s %s %s", s.State, s.Outcome, s.Reason)), s.Verdict)
	for i := range s.Steps {
		step := &s.Steps[i]
		at := strings.Repeat(" ", len("2006-01-02 15:04:05Z"))
		if !step.At.IsZero() {
			at = step.At.Format("2006-01-02 15:04:05Z")
		}
		fmt.Fprintf(&b, "%s  %-8s  %s\n", at, step.Kind, step.Text)
	}
	b.WriteString("\n")
	for _, n := range s.Next {
		b.WriteString("next: " + n + "\n")
	}
	return b.String()
}
