package configs

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	good := map[string]time.Duration{
		"0": 0, "0s": 0, "30s": 30 * time.Second, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour, "1w": 168 * time.Hour,
		"1w2d3h": (168 + 48 + 3) * time.Hour, "1.5d": 36 * time.Hour, "0.5w": 84 * time.Hour, "-1d": -24 * time.Hour, "250ms": 250 * time.Millisecond,
		"1µs": time.Microsecond, "15250w": 15250 * 168 * time.Hour,
	}
	for text, want := range good {
		got, err := ParseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	bad := map[string]string{
		"": "is not a duration", "-": "is not a duration", "--1s": "is not a duration", "+1s": "is not a duration", "1": "is not a duration",
		"s": "is not a duration", "1x": "is not a duration", "1s ": "is not a duration", " 1s": "is not a duration", "1.2.3s": "is not a duration",
		"1mo": `has the unit "mo"`, "1y": `has the unit "y"`, "16000w": "is longer", "15250w15250w": "is longer", "٣s": "is not a duration",
	}
	for text, want := range bad {
		_, err := ParseDuration(text)
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"1h30m", "2d", "-1w", "0.1d", "9999999999w"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if want, goErr := time.ParseDuration(text); goErr == nil && err == nil {
			require.Equal(t, want, d)
		}
		if err == nil && d != math.MinInt64 {
			again, err := ParseDuration(formatDuration(d))
			require.NoError(t, err)
			require.Equal(t, d, again)
		}
	})
}

func TestClosest(t *testing.T) {
	t.Parallel()
	known := []string{"schedule", "start_deadline", "run", "resource", "resource_offset", "tags", "kill_after", "warn"}
	cases := map[string]string{
		"schedul": "schedule", "shcedule": "schedule", "Schedule": "schedule", "startDeadline": "start_deadline", "kill-after": "kill_after",
		"rum": "run", "tag": "tags", "resorce": "resource", "warning": "warn", "": "", "x": "", "no": "", "frobnicate": "", strings.Repeat("schedule", 20): "",
	}
	for written, want := range cases {
		assert.Equal(t, want, closest(written, known), written)
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a", series([]string{"a"}, "or"))
	assert.Equal(t, "a or b", series([]string{"a", "b"}, "or"))
	assert.Equal(t, "a, b and c", series([]string{"a", "b", "c"}, "and"))
}

// TestPlacesInsideScalars: an offset into a value is a column of the file, if that can be known.
func TestPlacesInsideScalars(t *testing.T) {
	t.Parallel()
	cases := []struct {
		line, value    string
		column         int
		part           part
		column2, width int
	}{
		{`k: 0 99 *`, "0 99 *", 4, part{2, 2}, 6, 2},
		{`k: "0 99 *"`, "0 99 *", 4, part{2, 2}, 7, 2},
		{`k: "0 99 *"`, "0 99 *", 4, part{0, 6}, 4, 8},  // all of it: the scalar with its quotes
		{`k: "0 99 *"`, "0 99 *", 4, part{0, 1}, 5, 1},  // the first character only
		{`k: "0 99 *"`, "0 99 *", 4, part{6, 0}, 11, 1}, // the end: the closing quote
		{`k: 'it''s 99'`, "it's 99", 4, part{5, 2}, 11, 2},
		{`k: "a\tb\\c"`, "a\tb\\c", 4, part{2, 1}, 8, 1},
		{`k: "a\tb\\c"`, "a\tb\\c", 4, part{3, 2}, 9, 3},
		{`k: "äö 99"`, "äö 99", 4, part{5, 2}, 8, 2},     // bytes in, characters out
		{`k: "\u00e4 99"`, "ä 99", 4, part{3, 2}, 4, 11}, // an escape of several characters: the scalar
		{`k: >-`, "0 99 *", 4, part{2, 2}, 4, 1},         // not on this line: the scalar
		{`k: "0`, "0 99 *", 4, part{2, 2}, 4, 1},         // goes on in the next line
		{`k: x`, "x", 4, part{9, 1}, 4, 1},
		{`k: x`, "x", 4, part{-1, 1}, 4, 1},
	}
	for _, c := range cases {
		s := newSource("f", c.line)
		whole := s.locate(1, c.column, c.value)
		got := s.within(whole, c.value, c.part)
		assert.Equal(t, c.column2, got.column, "%s %v", c.line, c.part)
		assert.Equal(t, c.width, got.length, "%s %v", c.line, c.part)
	}
}

func TestSnippet(t *testing.T) {
	t.Parallel()
	s := newSource("f", "\tkey: x\n日本 = y\nñe: \x1b[31m z\nurl: postgres://u:påss@h/d rest\n")
	assert.Equal(t, "    1 | \tkey: x\n      | \t     ^", s.snippet(1, 7, 1))
	assert.Equal(t, "    2 | 日本 = y\n      |        ^", s.snippet(2, 6, 1))
	assert.Equal(t, "    2 | 日本 = y\n      | ^~~", s.snippet(2, 1, 2))
	assert.Equal(t, "    3 | ñe: �[31m z\n      | ^~~", s.snippet(3, 1, 3))
	assert.Equal(t, "    4 | url: postgres://u:****@h/d rest\n      |                            ^~~~", s.snippet(4, 28, 4))
	assert.Empty(t, s.snippet(5, 1, 1))
	assert.Empty(t, s.snippet(9, 1, 1))
}

func report(t *testing.T) *Errors {
	t.Helper()
	_, err := Parse("dir/50%,a:b.yaml", []byte("jobs:\n  a: {rum: x}\n"), Options{Flags: map[string]string{"listen": "x"}})
	var e *Errors
	require.ErrorAs(t, err, &e)
	return e
}

func TestWriteText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, report(t).WriteText(&b))
	assert.Equal(t, `--listen: "x" is not an address to listen on: write host:port, for example 127.0.0.1:8420 or [::1]:8420  [listen]
dir/50%,a:b.yaml:2:7: unknown key "rum" in job "a", did you mean "run"?  [unknown-key]
    2 |   a: {rum: x}
      |       ^~~
2 errors in 1 file and the flags. Nothing was loaded.
`, b.String())
}

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, report(t).WriteJSON(&b))
	assert.JSONEq(t, `[
		{"file": "--listen", "code": "listen", "message": "\"x\" is not an address to listen on: write host:port, for example 127.0.0.1:8420 or [::1]:8420"},
		{"file": "dir/50%,a:b.yaml", "line": 2, "column": 7, "length": 3, "code": "unknown-key",
		 "message": "unknown key \"rum\" in job \"a\", did you mean \"run\"?", "snippet": "    2 |   a: {rum: x}\n      |       ^~~"}
	]`, b.String())
}

func TestWriteGitHub(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, report(t).WriteGitHub(&b))
	assert.Equal(t, `::error title=listen::--listen: "x" is not an address to listen on: write host:port, for example 127.0.0.1:8420 or [::1]:8420
::error file=dir/50%25%2Ca%3Ab.yaml,line=2,col=7,endColumn=10,title=unknown-key::unknown key "rum" in job "a", did you mean "run"?
`, b.String())
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWritersReport(t *testing.T) {
	t.Parallel()
	e := report(t)
	require.ErrorIs(t, e.WriteText(brokenWriter{}), errBroken)
	require.ErrorIs(t, e.WriteJSON(brokenWriter{}), errBroken)
	require.ErrorIs(t, e.WriteGitHub(brokenWriter{}), errBroken)
}
