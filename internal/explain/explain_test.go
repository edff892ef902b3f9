package explain_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/jobs"
)

// For every outcome and every reason code there is a scenario (package scheduler plays them) whose story is in testdata.
func TestEveryReasonHasAStory(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		header, _, _ := strings.Cut(string(text), "\n")
		words := strings.Fields(header)
		if len(words) > 2 {
			seen["outcome "+words[2]] = true
		}
		if len(words) > 3 {
			seen["reason "+words[3]] = true
		}
		if len(words) > 1 {
			seen["state "+words[1]] = true
		}
	}
	for _, o := range jobs.Outcomes() {
		assert.True(t, seen["outcome "+string(o)], "no scenario ends as %s", o)
	}
	for _, r := range jobs.Reasons() {
		assert.True(t, seen["reason "+string(r)], "no scenario has the reason %s", r)
	}
	for _, s := range []jobs.State{jobs.StatePending, jobs.StateRunning, jobs.StateHeld, jobs.StateFinished} {
		assert.True(t, seen["state "+string(s)], "no scenario is in the state %s", s)
	}
}

func ended(reason jobs.Reason, outcome jobs.Outcome, detail string) *explain.Facts {
	began := time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC)
	end := began.Add(time.Minute)
	r := jobs.Run{
		ID: 12, Job: "job", Occurrence: jobs.ScheduledOccurrence(began), Attempt: 1, Trigger: jobs.TriggerSchedule, ScheduledAt: began, DueAt: began,
		Resource: "job", Overlap: jobs.RuleSkip, OnLost: jobs.OnLostFail, MaxAttempts: 1, State: jobs.StateFinished, Outcome: outcome, Reason: reason,
		Detail: json.RawMessage(detail), CreatedAt: began, FinishedAt: &end,
	}
	return &explain.Facts{Now: end, Job: "job", Question: explain.Question{RunID: 12}, Run: &r, Attempts: []jobs.Run{r}}
}

func TestEveryReasonHasASentence(t *testing.T) {
	t.Parallel()
	for _, reason := range jobs.Reasons() {
		for _, detail := range []string{``, `{}`, `null`, `[]`, `{"holder": null, "pause": 1, "upstream": {}, "limits": [], "only_on": "x", "replicas": [1]}`} {
			for _, outcome := range jobs.Outcomes() {
				s := explain.Tell(ended(reason, outcome, detail))
				assert.NotContains(t, s.Verdict, "does not know", reason)
				assert.Contains(t, s.Verdict, ": ", "%s has no sentence", reason)
				assert.NotContains(t, s.Verdict, "%!")
			}
		}
	}
}

// Every fact is told, whatever it is, and nothing in it acts on a terminal or looks like JSON.
func FuzzFactsAreTold(f *testing.F) {
	f.Add("lock_held", `{"holder": {"acquired_at": "2026-05-01T06:00:00Z", "metadata": {"team": "ops\u001b[31m"}}}`)
	f.Add("upstream", `{"upstream": [{"job": "a\nb", "run_id": 1.5, "outcome": 7}], "missed_count": "x"}`)
	f.Add("paused", `{"pause": {"job": "", "by": {"name": "x"}, "until": null}}`)
	f.Add("cosmic", `{"deep": [[{"a": [null, true]}]]}`)
	f.Fuzz(func(t *testing.T, reason, detail string) {
		if !json.Valid([]byte(detail)) {
			return
		}
		s := explain.Tell(ended(jobs.Reason(reason), jobs.OutcomeMissed, detail))
		texts := s.Verdict + allText(s, "") + strings.Join(s.Next, "")
		for _, r := range texts {
			if r < ' ' || r == 0x7f || r == 0x202e {
				t.Fatalf("a control character in %q", texts)
			}
		}
	})
}

func allText(s *explain.Story, end string) string {
	var all strings.Builder
	for _, step := range s.Steps {
		all.WriteString(step.Text + end)
	}
	return all.String()
}

// A fact that no sentence takes is shown by its key.
func TestAFactNobodyKnowsIsShown(t *testing.T) {
	t.Parallel()
	for _, reason := range jobs.Reasons() {
		s := explain.Tell(ended(reason, jobs.OutcomeMissed, `{"from_the_future": {"deep": ["unheard"]}, "holder": {"metadata": {"team": "ops"}}}`))
		all := allText(s, "\n")
		assert.Contains(t, all, "from_the_future deep 1: unheard", reason)
		assert.Contains(t, all, "team: ops", reason)
	}
}

// The examples of the handbook are stories that were really told.
func TestTheExamplesInTheHandbook(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(doc), "\n## Why did it not run?\n")
	require.True(t, found)
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, name := range []string{"skipped-overlap", "waited-for-a-lock-of-another-job", "absent-dst-gap"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		story := []string{lines[2]}
		for _, line := range lines[4:] {
			if len(line) > 32 && !strings.HasPrefix(line, "next: ") {
				line = line[:20] + " " + line[32:] // without the kind, as the command shows it
			}
			story = append(story, line)
		}
		assert.Contains(t, flat(section), flat(strings.Join(story, "\n")), name)
	}
}
