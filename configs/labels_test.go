package configs

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/policies.yaml")
	require.NoError(t, err)
	c := mustParse(t, string(data))
	assert.Equal(t, map[string]string{"disk": "fast", "kubernetes.io/os": "linux"}, c.Labels)
	placed, err := c.Job("placed")
	require.NoError(t, err)
	assert.Equal(t, jobs.Labels{"disk": {"fast"}, "zone": {"a", "b"}}, placed.OnlyOn, "the order of values means nothing")
	anywhere, err := c.Job("anywhere")
	require.NoError(t, err)
	assert.Nil(t, anywhere.OnlyOn)
}

// What a job asks for takes the place of the defaults, and is not added to them.
func TestOnlyOnOfDefaults(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "defaults: {only_on: {disk: fast}}\njobs: {a: {run: x}, b: {run: x, only_on: {zone: a}}, c: {run: x, only_on: {}}}\n")
	var got []jobs.Labels
	for _, j := range c.Jobs {
		got = append(got, j.OnlyOn)
	}
	assert.Equal(t, []jobs.Labels{{"disk": {"fast"}}, {"zone": {"a"}}, nil}, got)
}

// Replicas with other labels have the same definitions; a job with another only_on is another one.
func TestLabelsAreNoDefinition(t *testing.T) {
	t.Parallel()
	hash := func(text string) string { return mustParse(t, text).Hash }
	plain := hash("jobs: {a: {run: x, only_on: {zone: [a, b]}}}\n")
	assert.Equal(t, plain, hash("labels: {zone: a}\njobs: {a: {run: x, only_on: {zone: [b, a]}}}\n"))
	assert.NotEqual(t, plain, hash("jobs: {a: {run: x, only_on: {zone: a}}}\n"))
	assert.NotEqual(t, plain, hash("jobs: {a: {run: x}}\n"))
}

func TestLabelsFromOutside(t *testing.T) {
	t.Parallel()
	const file = "labels: {disk: slow, rack: r1}\njobs: {}\n"
	for name, c := range map[string]struct {
		env, flag string
		want      map[string]string
		problem   string
	}{
		"the file":            {want: map[string]string{"disk": "slow", "rack": "r1"}},
		"the variable":        {env: "disk=fast, zone=a", want: map[string]string{"disk": "fast", "zone": "a"}},
		"the flag":            {env: "disk=fast", flag: "zone=b", want: map[string]string{"zone": "b"}},
		"no value":            {env: "disk", problem: "CRONLATCH_LABELS: labels must look like disk=fast,zone=a, not "},
		"an empty item":       {env: "a=b,", problem: "CRONLATCH_LABELS: labels must look like disk=fast,zone=a, not "},
		"an empty value":      {flag: "disk=", problem: "--label: labels has the item \"disk=\"; a label and its value have 1 to 63 "},
		"a value with a sign": {flag: "disk=a=b", problem: "--label: labels has the item \"disk=a=b\"; "},
		"twice":               {flag: "disk=a,disk=b", problem: "--label: labels has the label \"disk\" twice; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse("f.yaml", []byte(file), Options{
				Flags: map[string]string{"labels": c.flag},
				Getenv: func(name string) string {
					return map[string]string{"CRONLATCH_LABELS": c.env}[name]
				},
			})
			if c.problem != "" {
				require.ErrorContains(t, err, c.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got.Labels)
		})
	}
}
