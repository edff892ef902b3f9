package jobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withParams has a parameter of each kind.
func withParams() *Job {
	ten := "10"
	return &Job{Name: "report", Params: map[string]Param{
		"month":   {Type: ParamString, Pattern: `\d{4}-\d{2}|last`},
		"rows":    {Type: ParamInteger, Default: &ten},
		"dry-run": {Type: ParamBoolean, Default: new("false")},
		"format":  {Type: ParamString, Enum: []string{"csv", "json"}, Default: new("csv")},
		"filter":  {Type: ParamString, LeadingDash: true, Default: new("")},
	}}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	t.Parallel()
	given := map[string]string{"month": "2026-05", "filter": "-x"}
	all, err := withParams().CheckParams(given)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"month": "2026-05", "rows": "10", "dry-run": "false", "format": "csv", "filter": "-x"}, all)
	assert.Len(t, given, 2, "what was given stays as it was")
	none, err := (&Job{}).CheckParams(nil)
	require.NoError(t, err)
	assert.Nil(t, none)
}

func TestWhatParametersAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxParam+1)
	for name, c := range map[string]struct {
		given map[string]string
		want  string // field and code of each fault
	}{
		"missing":          {nil, "params.month required"},
		"unknown":          {map[string]string{"month": "last", "mnoth": "x"}, "params.mnoth unknown"},
		"a part matches":   {map[string]string{"month": "2026-05-01"}, "params.month pattern"},
		"a line of it":     {map[string]string{"month": "2026-05\n"}, "params.month pattern"},
		"one alternative":  {map[string]string{"month": "last one"}, "params.month pattern"},
		"no number":        {map[string]string{"month": "last", "rows": "ten"}, "params.rows type"},
		"a long number":    {map[string]string{"month": "last", "rows": "1234567890123456789"}, "params.rows type"},
		"octal":            {map[string]string{"month": "last", "rows": "010"}, "params.rows type"},
		"below zero":       {map[string]string{"month": "last", "rows": "-1"}, "params.rows leading_dash"},
		"no boolean":       {map[string]string{"month": "last", "dry-run": "True"}, "params.dry-run type"},
		"not in the list":  {map[string]string{"month": "last", "format": "xml"}, "params.format enum"},
		"an option":        {map[string]string{"month": "--output=/etc/passwd"}, "params.month leading_dash"},
		"NUL":              {map[string]string{"month": "last", "filter": "a\x00b"}, "params.filter encoding"},
		"not UTF-8":        {map[string]string{"month": "last", "filter": "\xff"}, "params.filter encoding"},
		"too long":         {map[string]string{"month": "last", "filter": long}, "params.filter too_long"},
		"all at once":      {map[string]string{"x": "1", "rows": ""}, "params.month required, params.rows type, params.x unknown"},
		"empty is no text": {map[string]string{"month": ""}, "params.month pattern"},
	} {
		_, err := withParams().CheckParams(c.given)
		var refused *ParamsError
		require.ErrorAs(t, err, &refused, name)
		var faults []string
		for _, f := range refused.Faults {
			faults = append(faults, f.Field+" "+f.Code)
			assert.NotEmpty(t, f.Message, name)
		}
		assert.Equal(t, c.want, strings.Join(faults, ", "), name)
	}
	_, err := (&Job{Name: "plain"}).CheckParams(map[string]string{"x": "canary"})
	require.ErrorContains(t, err, `the job declares no parameters, and "x" was given`)
	assert.NotContains(t, err.Error(), "canary")
}

func TestParametersHaveALimitTogether(t *testing.T) {
	t.Parallel()
	j, given := &Job{Params: map[string]Param{}}, map[string]string{}
	for name := range strings.SplitSeq("a b c d e f g h i", " ") {
		j.Params[name], given[name] = Param{Type: ParamString}, strings.Repeat("x", MaxParam)
	}
	_, err := j.CheckParams(given)
	var refused *ParamsError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, []ParamFault{{"params", ParamTooLong, "all parameters together have 36864 bytes, and 32768 is the most"}}, refused.Faults)
	delete(given, "i")
	j.Params["i"] = Param{Default: new("")}
	_, err = j.CheckParams(given)
	assert.NoError(t, err)
}

// TestAPatternStaysOne: parentheses of its own do not take it apart.
func TestAPatternStaysOne(t *testing.T) {
	t.Parallel()
	_, err := CompileParamPattern(`a)|(.*`)
	require.Error(t, err)
	p, err := CompileParamPattern(`a|b`)
	require.NoError(t, err)
	assert.False(t, p.MatchString("ab"))
}

const nasty = `'; rm -rf "$HOME" -- {{ .Period }} #`

// TestParametersInCommands: one piece of one element, and a variable.
func TestParametersInCommands(t *testing.T) {
	t.Parallel()
	a := attempt(t, func(j *Job) {
		j.Params = map[string]Param{"the-text": {}, "rows": {Default: new("10")}}
		j.Command = []string{"x", "{{ .Params.the-text }}", "--rows={{.Params.rows}}"}
		j.Env = map[string]string{"CRONLATCH_PARAM_ROWS": "1"}
	})
	a.Run.Params = map[string]string{"the-text": nasty}
	argv, err := a.Argv()
	require.NoError(t, err)
	assert.Equal(t, []string{"x", nasty, "--rows=10"}, argv)
	env := a.Environ(func(string) string { return "" })
	assert.Contains(t, env, "CRONLATCH_PARAM_THE_TEXT="+nasty)
	assert.Contains(t, env, "CRONLATCH_PARAM_ROWS=10")

	a.Job.Run, a.Job.Command = "echo {{ .Params.the-text }}", nil
	argv, err = a.Argv()
	require.NoError(t, err)
	assert.Equal(t, "echo {{ .Params.the-text }}", argv[2], "shell text is passed as it is")
}

// TestParametersAreCheckedAtTheStart: what the ledger has was checked by a definition that may be another one now.
func TestParametersAreCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	for _, work := range []func(j *Job){
		func(j *Job) { j.Run = "x" },
		func(j *Job) { j.Command = []string{"x"} },
	} {
		a := attempt(t, work)
		a.Job.Params = map[string]Param{"mode": {Enum: []string{"safe"}}}
		a.Run.Params = map[string]string{"mode": "fast"}
		_, err := a.Argv()
		require.ErrorContains(t, err, "the parameter mode must be one of safe")
	}
	a := attempt(t, func(j *Job) { j.HTTP = &HTTP{URL: "https://example.com"} })
	a.Run.Params = map[string]string{"gone": "x"}
	_, err := a.HTTPRequest()
	require.ErrorContains(t, err, `the job declares no parameters, and "gone" was given`)
	a = attempt(t, func(j *Job) { j.SQL = &SQL{Statements: []string{"SELECT 1"}} })
	a.Run.Params = map[string]string{"gone": "x"}
	_, err = a.SQLStatements()
	assert.ErrorContains(t, err, "the job declares no parameters")
}

func TestParametersInRequestsAndStatements(t *testing.T) {
	t.Parallel()
	a := attempt(t, func(j *Job) {
		j.Params = map[string]Param{"x": {}}
		j.HTTP = &HTTP{URL: "https://example.com/{{ .Params.x }}?q={{ .Params.x }}", Body: "{{ .Params.x }}"}
		j.SQL = &SQL{Statements: []string{"SELECT {{ .Params.x }}"}}
	})
	a.Run.Params = map[string]string{"x": "a/../'b&c"}
	r, err := a.HTTPRequest()
	require.NoError(t, err)
	assert.Equal(t, "https://example.com/a%2F..%2F%27b%26c?q=a%2F..%2F%27b%26c", r.URL)
	assert.Equal(t, "a/../'b&c", r.Body)
	list, err := a.SQLStatements()
	require.NoError(t, err)
	assert.Equal(t, []string{"SELECT 'a/../''b&c'"}, list)
}

func TestSecretsAreInTheEnvironmentAlone(t *testing.T) {
	t.Parallel()
	a := attempt(t, func(j *Job) {
		j.Env = map[string]string{"PGPASSWORD": "from defaults"}
		j.Secrets = map[string]Secret{"PGPASSWORD": "hunter2-canary", "CRONLATCH_JOB": "hunter2-canary"}
	})
	env := a.Environ(func(string) string { return "" })
	assert.Contains(t, env, "PGPASSWORD=hunter2-canary")
	assert.Contains(t, env, "CRONLATCH_JOB=report:monthly")
	argv, err := a.Argv()
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(argv, " "), "canary")
}
