package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/cronlatch/cronlatch/internal/output"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type item struct {
	ID   int      `json:"id"`
	Job  string   `json:"job"`
	Tags []string `json:"tags"`
	Code *int     `json:"exit_code"`
}

func list(items ...item) output.List[item] {
	return output.List[item]{
		Items: items,
		Columns: []output.Column[item]{
			{Title: "ID", Cell: func(i item) string { return strings.Repeat("1", i.ID) }, Right: true},
			{Title: "JOB", Cell: func(i item) string { return i.Job }, Tone: func(item) output.Tone { return output.Good }},
			{Title: "TAGS", Cell: func(i item) string { return strings.Join(i.Tags, ",") }},
		},
		Name: func(i item) string { return i.Job },
	}
}

func written(t *testing.T, o output.Options, l output.List[item]) string {
	t.Helper()
	var b bytes.Buffer
	o.Writer = &b
	require.NoError(t, output.Write(o, l))
	return b.String()
}

func TestWriteEveryFormat(t *testing.T) {
	t.Parallel()
	code := 3
	full := list(item{1, "backup:db", []string{"ops"}, nil}, item{2, "a\x1b[2Jb\nc", []string{}, &code})
	for _, c := range []struct {
		name string
		o    output.Options
		l    output.List[item]
		want string
	}{
		{
			"table",
			output.Options{Format: output.Table},
			full,
			"ID  JOB           TAGS\n 1  backup:db     ops\n11  a\\x1b[2Jb\\nc\n",
		},
		{"default is table", output.Options{}, list(item{Job: "x"}), "ID  JOB  TAGS\n    x\n"},
		{
			"color",
			output.Options{Color: true},
			list(item{1, "x", nil, nil}),
			"\x1b[1mID\x1b[0m  \x1b[1mJOB\x1b[0m  \x1b[1mTAGS\x1b[0m\n 1  \x1b[32mx\x1b[0m\n",
		},
		{
			"json",
			output.Options{Format: output.JSON},
			list(item{1, "a<b", []string{}, &code}),
			"[\n  {\n    \"id\": 1,\n    \"job\": \"a<b\",\n    \"tags\": [],\n    \"exit_code\": 3\n  }\n]\n",
		},
		{
			"ndjson",
			output.Options{Format: output.NDJSON},
			full,
			`{"id":1,"job":"backup:db","tags":["ops"],"exit_code":null}` + "\n" + `{"id":2,"job":"a\u001b[2Jb\nc","tags":[],"exit_code":3}` + "\n",
		},
		{
			"yaml",
			output.Options{Format: output.YAML},
			full,
			"- id: 1\n  job: \"backup:db\"\n  tags:\n    - ops\n  exit_code: null\n- id: 2\n  job: \"a\\u001b[2Jb\\nc\"\n  tags: []\n  exit_code: 3\n",
		},
		{"name", output.Options{Format: output.Name}, full, "backup:db\na\\x1b[2Jb\\nc\n"},
		{"empty table", output.Options{Format: output.Table}, list(), ""},
		{"empty json", output.Options{Format: output.JSON}, list(), "[]\n"},
		{"empty yaml", output.Options{Format: output.YAML}, list(), "[]\n"},
		{"empty ndjson", output.Options{Format: output.NDJSON}, list(), ""},
		{"empty name", output.Options{Format: output.Name}, list(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, written(t, c.o, c.l))
		})
	}
}

func TestWriteValue(t *testing.T) {
	t.Parallel()
	plain := func() []string { return []string{"version 1", "evil\x07"} }
	for format, want := range map[output.Format]string{
		output.Table:  "version 1\nevil\\x07\n",
		output.JSON:   "{\n  \"version\": \"1\"\n}\n",
		output.NDJSON: "{\"version\":\"1\"}\n",
		output.YAML:   "version: \"1\"\n",
	} {
		var b bytes.Buffer
		require.NoError(t, output.WriteValue(output.Options{Writer: &b, Format: format}, map[string]string{"version": "1"}, plain))
		assert.Equal(t, want, b.String(), format)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteReportsTheWriter(t *testing.T) {
	t.Parallel()
	err := output.Write(output.Options{Writer: brokenPipe{}, Format: output.JSON}, list())
	require.ErrorIs(t, err, os.ErrClosed)
	require.EqualError(t, err, "writing the answer: file already closed")
}

type unencodable struct{}

func (unencodable) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

func TestWriteReportsTheItem(t *testing.T) {
	t.Parallel()
	for _, f := range []output.Format{output.JSON, output.NDJSON, output.YAML} {
		err := output.Write(output.Options{Writer: brokenPipe{}, Format: f}, output.List[unencodable]{Items: make([]unencodable, 1)})
		require.ErrorContains(t, err, "encoding the answer", f)
	}
}

// Whatever a user wrote: readers of JSON and YAML get exactly it, and the terminal gets nothing that acts.
func TestStringsSurviveAndDoNotAct(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"no", "010", "null", "~", "2026-03-08T03:00:00-04:00", "a: b", "# x", " x", "x ", "-", "- a", "", "\n", "\tq",
		"'", `"`, "1e3", "0x1f", ".inf", "{", "[a]", "%x", "@x", "&a", "*a", "|", "a:", "true", "y", "\\", "\u009b2J",
		"\u2028", "\u202eabc", "\U000e0001x", "\u0085", "\x7f", "NaN", "---", "...",
	}))
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "s")
		in := map[string]any{"k": s, "list": []any{s, nil, true, []any{s, map[string]any{"deep": s}}, []any{}, map[string]any{}}}
		for _, f := range []output.Format{output.JSON, output.NDJSON, output.YAML} {
			var b bytes.Buffer
			if err := output.WriteValue(output.Options{Writer: &b, Format: f}, in, nil); err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			read := json.Unmarshal
			if f == output.YAML {
				read = yaml.Unmarshal
			}
			if err := read(b.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v: %q", f, err, b.String())
			}
			if !assert.ObjectsAreEqual(in, got) {
				t.Fatalf("%s: %q became %v", f, b.String(), got)
			}
			if clean := output.CleanLines(b.String()); clean != b.String() {
				t.Fatalf("%s acts: %q", f, b.String())
			}
		}
	})
}

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain, ümlaut, 日本, 🚀":   "plain, ümlaut, 日本, 🚀",
		`back\slash`:             `back\slash`,
		"a\nb\tc\rd":             `a\nb\tc\rd`,
		"\x1b[2J\x07\x7f":        `\x1b[2J\x07\x7f`,
		"\u009b2J":               `\u009b2J`,
		"\u202etxt\u2066\u200b":  `\u202etxt\u2066\u200b`,
		"\u2028\u2029\u0085":     `\u2028\u2029\u0085`,
		"\U000e0001":             `\U000e0001`,
		"\xff\xfe":               `\xff\xfe`,
		"replacement \ufffd is ": "replacement \ufffd is ",
	} {
		assert.Equal(t, want, output.Clean(in))
	}
	assert.Equal(t, "a\n\tb\\r\\x1b", output.CleanLines("a\n\tb\r\x1b"))
}

func TestColor(t *testing.T) {
	t.Parallel()
	env := func(name, value string) func(string) string {
		return func(asked string) string {
			if asked == name {
				return value
			}
			return ""
		}
	}
	for _, c := range []struct {
		mode     output.ColorMode
		terminal bool
		env      func(string) string
		want     bool
	}{
		{output.ColorAlways, false, env("NO_COLOR", "1"), true},
		{output.ColorNever, true, env("", ""), false},
		{output.ColorAuto, false, env("", ""), false},
		{output.ColorAuto, true, env("", ""), true},
		{output.ColorAuto, true, env("NO_COLOR", ""), true},
		{output.ColorAuto, true, env("NO_COLOR", "1"), false},
		{output.ColorAuto, true, env("TERM", "dumb"), false},
	} {
		assert.Equal(t, c.want, c.mode.Enabled(c.terminal, c.env), "%+v", c)
	}
	assert.Equal(t, "x", output.Plain.Paint("x"))
	assert.Empty(t, output.Bad.Paint(""))
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { assert.NoError(t, null.Close()) }()
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, file.Close()) }()
	assert.False(t, output.IsTerminal(null), "/dev/null is a character device and no terminal")
	assert.False(t, output.IsTerminal(file))
	assert.False(t, output.IsTerminal(&bytes.Buffer{}))
}
