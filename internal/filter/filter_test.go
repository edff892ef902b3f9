package filter_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/filter"
	"github.com/cronlatch/cronlatch/jobs"
)

func tagged(tag string) []string {
	return map[string][]string{"finance": {"a", "b"}}[tag]
}

func TestWhatAFilterMeans(t *testing.T) {
	t.Parallel()
	on := func(column jobs.RunColumn, m jobs.Match) jobs.RunFilter {
		return jobs.RunFilter{Where: []jobs.Condition{{Column: column, Match: m}}}
	}
	words := func(w ...jobs.WordMatch) jobs.RunFilter { return jobs.RunFilter{Words: w} }
	at := time.Date(2026, 3, 7, 17, 0, 0, 0, time.UTC)
	for text, want := range map[string]jobs.RunFilter{
		"":                          {},
		" \t ":                      {},
		"job:backup:db":             on(jobs.ColumnJob, jobs.Match{Exact: []string{"backup:db"}}),
		"job:report:*":              on(jobs.ColumnJob, jobs.Match{Prefix: []string{"report:"}}),
		"job:*":                     on(jobs.ColumnJob, jobs.Match{Prefix: []string{""}}),
		`job:"report:*"`:            on(jobs.ColumnJob, jobs.Match{Exact: []string{"report:*"}}),
		`job:"my report"*`:          on(jobs.ColumnJob, jobs.Match{Prefix: []string{"my report"}}),
		`job:"a,b",c*,"d \"e\" \\"`: on(jobs.ColumnJob, jobs.Match{Exact: []string{"a,b", `d "e" \`}, Prefix: []string{"c"}}),
		"-state:finished,held":      on(jobs.ColumnState, jobs.Match{Not: true, Exact: []string{"finished", "held"}}),
		"outcome:timed_out":         on(jobs.ColumnOutcome, jobs.Match{Exact: []string{"timed_out"}}),
		"reason:lock_held":          on(jobs.ColumnReason, jobs.Match{Exact: []string{"lock_held"}}),
		"trigger:backfill":          on(jobs.ColumnTrigger, jobs.Match{Exact: []string{"backfill"}}),
		"replica:web-*":             on(jobs.ColumnReplica, jobs.Match{Prefix: []string{"web-"}}),
		"resource:db/orders":        on(jobs.ColumnResource, jobs.Match{Exact: []string{"db/orders"}}),
		"id:7,12":                   on(jobs.ColumnID, jobs.Match{Exact: []string{"7", "12"}}),
		"attempt:2":                 on(jobs.ColumnAttempt, jobs.Match{Exact: []string{"2"}}),
		"tag:finance":               on(jobs.ColumnJob, jobs.Match{Exact: []string{"a", "b"}}),
		"-tag:finance":              on(jobs.ColumnJob, jobs.Match{Not: true, Exact: []string{"a", "b"}}),
		"tag:nobody":                on(jobs.ColumnJob, jobs.Match{Exact: []string{}}),
		"backup":                    words(jobs.WordMatch{Text: "backup"}),
		`-x "a:b" c,d`:              words(jobs.WordMatch{Text: "x", Not: true}, jobs.WordMatch{Text: "a:b"}, jobs.WordMatch{Text: "c,d"}),
		"since:90m":                 {SinceAgo: 90 * time.Minute},
		"since:3d until:1w2d12h":    {SinceAgo: 72 * time.Hour, UntilAgo: (9*24 + 12) * time.Hour},
		"since:2026-03-07T12:00:00-05:00 until:2026-03-07T17:00:00Z": {Since: at, Until: at},
	} {
		f, err := filter.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, f.Compile(tagged), text)
	}
}

func TestWhatIsWrongWithAFilter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"jbo:x":                       `the term "jbo:x" at character 1: "jbo" is not a key, did you mean "job"?; the keys are job, state,`,
		"ü  outcom:failed":            `the term "outcom:failed" at character 4: "outcom" is not a key, did you mean "outcome"?`,
		"a state:runing b":            `the term "state:runing" at character 3: "runing" is no state, did you mean "running"?; there are pending, running`, //nolint:misspell // on purpose
		"outcome:ok":                  `"ok" is no outcome; there are succeeded, failed`,
		"reason:lockheld":             `did you mean "lock_held"?`,
		"job:":                        "a value is empty",
		"job:a,,b":                    "a value is empty",
		"job:a,":                      "",
		"-":                           "a value is empty",
		`""`:                          "a value is empty",
		":x":                          "there is no key in front of the colon",
		`job:"a`:                      "a quote is not closed",
		`job:a"b"`:                    "a quote stands in the middle",
		`job:"a"b`:                    "something follows the closing quote",
		`"a",b`:                       "something follows the closing quote",
		"job:a*b":                     `can only be its end`,
		"job:a**":                     `can only be its end`,
		"state:run*":                  `which only job, replica and resource can`,
		"back*":                       `which only job, replica and resource can`,
		"id:0":                        "is not a number from 1 on",
		"id:007":                      "is not a number from 1 on",
		"attempt:9999999999999999999": "is not a number from 1 on",
		"since:yesterday":             "neither a duration like 90m",
		"since:0s":                    "neither a duration",
		"since:-1h":                   "neither a duration",
		"since:1h,2h":                 "takes one value",
		"-until:1h":                   "takes one value",
		"\xff":                        "not valid UTF-8",
		strings.Repeat("x", 5000):     "at most 4096 are allowed",
	} {
		_, err := filter.Parse(text)
		if want == "" {
			continue
		}
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), want, text)
		assert.Less(t, len(err.Error()), 700)
	}
}

// A comma at the end is a value that is missing.
func TestACommaAtTheEnd(t *testing.T) {
	t.Parallel()
	_, err := filter.Parse("job:a,")
	require.ErrorContains(t, err, "a value is empty")
}

func TestTermOfIsOneTerm(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"a", "two words", `q"\`, "x*", "-y", "a,b", "report:x", "", "🚀"} {
		f, err := filter.Parse(filter.TermOf("job", value))
		if value == "" {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, value)
		assert.Equal(t, []string{value}, f.Compile(nil).Where[0].Match.Exact)
	}
}

// Every reason, state, outcome and trigger of package jobs can be asked for.
func TestTheWordsAreThoseOfTheLedger(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../jobs/run.go", nil, 0)
	require.NoError(t, err)
	keys, count := map[string]string{"State": "state", "Outcome": "outcome", "Trigger": "trigger", "Reason": "reason"}, 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		kind, _ := spec.Type.(*ast.Ident)
		value, _ := spec.Values[0].(*ast.BasicLit)
		if kind == nil || value == nil || keys[kind.Name] == "" {
			return true
		}
		word, err := strconv.Unquote(value.Value)
		require.NoError(t, err)
		_, err = filter.Parse(keys[kind.Name] + ":" + word)
		require.NoError(t, err)
		count++
		return true
	})
	assert.Greater(t, count, 40)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"", `job:a,"b c"*  -outcome:failed since:3d`, `"\"`, "a:b", "-\x00", "since:1w", "paused:true", "action:job.*"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (filter.Filter, error){filter.ParseJobs, filter.ParseAudit} {
			if f, err := parse(text); err == nil {
				again, err := parse(f.String())
				if err != nil {
					t.Fatalf("%q was written as %q: %v", text, f.String(), err)
				}
				assert.Equal(t, f.CompileAudit(), again.CompileAudit(), "%q was written as %q", text, f.String())
			}
		}
		got, err := filter.Parse(text)
		if err != nil {
			return
		}
		again, err := filter.Parse(got.String())
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, got.String(), err)
		}
		assert.Equal(t, got.Compile(tagged), again.Compile(tagged), "%q was written as %q", text, got.String())
	})
}
