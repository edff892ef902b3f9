package database

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplitNames(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"a":                    {"a"},
		" a ,\tB ,\"C\" ":      {"a", "b", "C"},
		`"$user", public`:      {"$user", "public"},
		`"a""b","x,y", "it's"`: {`a"b`, "x,y", "it's"},
		"ÄÖ":                   {"ÄÖ"},
	} {
		got, err := splitNames(list)
		require.NoError(t, err, list)
		assert.Equal(t, want, got, list)
	}
	for _, list := range []string{",", "a,", ",a", "a b", `"a`, `"a"b`, `a"b"`, `"a""`, ""} {
		_, err := splitNames(list)
		require.ErrorContains(t, err, "is not a list of names", list)
	}
}

func TestQuoteName(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `U&"Plain_1"`, quoteName("Plain_1"))
	assert.Equal(t, `U&"\+000024user\+000020\+00005C\+000027\+000022\+01F642"`, quoteName(`$user \'"🙂`))
}

// Nothing that pgdriver's or the server's lexer takes for something else comes out, whatever goes in.
func FuzzSearchPath(f *testing.F) {
	for _, seed := range []string{`a, "B"`, `"a""b",'$1'`, `"`, ",", "U&\"\\0041\"", "x\x00"} {
		f.Add(seed)
	}
	harmless := regexp.MustCompile(`^(DEFAULT|U&"(\w|\\\+[0-9A-F]{6})*"(, U&"(\w|\\\+[0-9A-F]{6})*")*)$`)
	f.Fuzz(func(t *testing.T, list string) {
		text, err := searchPath(list)
		if err == nil {
			require.Regexp(t, harmless, text)
			require.Equal(t, strings.TrimSpace(list) == "", text == "DEFAULT")
		}
	})
}
