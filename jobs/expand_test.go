package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExpandReplacesTokens(t *testing.T) {
	t.Parallel()
	v := Values{Period: "2026-05", ScheduledAt: time.Date(2026, 6, 1, 6, 0, 0, 0, time.FixedZone("", 2*3600)), Resource: "r {{ .Period }}"}
	cases := []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"{{ .Period }}", "2026-05"},
		{"{{.Period}}", "2026-05"},
		{"--month={{  .Period  }}/{{ .ScheduledAt }}", "--month=2026-05/2026-06-01T04:00:00Z"},
		{"{{ .Resource }}", "r {{ .Period }}"}, // not looked at again
		{`{{ "{{" }}.Names}}`, "{{.Names}}"},
		{"{ {.Period} }", "{ {.Period} }"},
		{"}}", "}}"},
	}
	for _, c := range cases {
		got, err := Expand([]string{"cmd", c.in}, v)
		require.NoError(t, err, c.in)
		assert.Equal(t, []string{"cmd", c.want}, got)
		assert.NoError(t, CheckArg(c.in, Tokens{Period: true}), c.in)
	}
}

func TestCheckArgRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		arg            string
		period         bool
		offset, length int
		message        string
	}{
		{"a {{ .Perod }}", true, 2, 12, `{{ .Perod }} is not known; there are {{ .Period }}, {{ .ScheduledAt }}, {{ .Resource }}, and {{ "{{" }} for two braces`},
		{"{{ .period }}", true, 0, 13, "{{ .period }} is not known; did you mean {{ .Period }}?"},
		{"{{ Resource }}", true, 0, 14, "{{ Resource }} is not known; did you mean {{ .Resource }}?"},
		{"é{{", true, 2, 2, `"{{" without "}}"; write {{ "{{" }} for two braces`},
		{"x{{ .Period }}", false, 1, 13, "{{ .Period }} is the date part of the resource, and the resource of this job has none; add one, like YYYY-MM"},
	}
	for _, c := range cases {
		err := CheckArg(c.arg, Tokens{Period: c.period})
		var e *TokenError
		require.ErrorAs(t, err, &e, c.arg)
		assert.Equal(t, TokenError{Message: c.message, Offset: c.offset, Length: c.length}, *e, c.arg)
	}
	_, err := Expand([]string{"a", "{{ nope }}"}, Values{})
	require.ErrorContains(t, err, "expand item 2 of the command: {{ nope }} is not known")
}

func FuzzExpand(f *testing.F) {
	f.Add("{{ .Period }}{{")
	f.Add(`{{ "{{" }}`)
	f.Fuzz(func(t *testing.T, arg string) {
		_, err := Expand([]string{arg}, Values{Period: "p"})
		require.Equal(t, CheckArg(arg, Tokens{Period: true}) == nil, err == nil)
	})
}
