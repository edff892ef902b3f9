package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onlyTheLoader are the bad fixtures that the schema accepts, because it takes more than one value to see the fault.
func onlyTheLoader() map[string]string {
	list := map[string]string{}
	for reason, names := range map[string]string{
		"a name that nothing defines":          "calendars-none notify-none",
		"bounds of a duration":                 "lock-ttl history-range",
		"who root is":                          "user-root user-root-in-defaults",
		"what a number of an account may be":   "user-numbers",
		"how a number is written":              "number-octal",
		"keys that exclude or need each other": "after-schedule after-schedule-keys retry-defaults tracing-headers tls-half tls-socket",
		"the first item of a list":             "command-first-empty",
		"the form of an address":               "allowed-hosts listen listen-port listen-socket listen-url",
		"what a name may be":                   "hook-long-name hook-names job-names",
		"what a schedule means":                "after-faulty jitter schedule-plain",
		"what other files say":                 "include-missing include-cycle include-faults include-twice include-patterns",
		"what a variable holds":                "variable-files variable-type variables",
		"what is in braces":                    "tokens",
		"what jobs say about each other":       "after-a-hook after-by-hand after-cycle after-forms after-half-dated after-itself after-rhythms after-twice after-two-cycles after-unknown",
	} {
		for name := range strings.FieldsSeq(names) {
			list[name] = reason
		}
	}
	return list
}

// beyondTheSchema are the codes of faults that no schema can see: they are about texts as such, about several values at
// once, or about what is outside of the file. Each fault with another code it must refuse.
func beyondTheSchema() []string {
	return []string{
		codeChannel, codeConflict, codeDatabase, codeFile, codeHost, codeInclude, codeJobName, codeListen, codeRange, codeTemplate, codeUser,
		codeVariable, "calendar", "schedule", "schedule-never", "after", "after-cycle", "after-never",
	}
}

// asWritten are listed files with other codes, and why the schema does not see them.
func asWritten() map[string]string {
	return map[string]string{
		"number-octal":        "a YAML reader gives the schema a number",
		"command-first-empty": "later items of command may be empty",
		"variable-type":       "the schema sees the variable",
		"tls-half":            "the other file may be set in the environment",
		"tracing-headers":     "the endpoint may be set in the environment",
	}
}

// TestWhatTheSchemaLetsPassIsBeyondIt looks at the codes of the files that it accepts.
func TestWhatTheSchemaLetsPassIsBeyondIt(t *testing.T) {
	t.Parallel()
	exceptions := asWritten()
	for name := range onlyTheLoader() {
		data, err := os.ReadFile(filepath.Join("testdata", "bad", name+".yaml"))
		require.NoError(t, err)
		_, err = Parse(name+".yaml", data, fixtureOptions())
		var report *Errors
		require.ErrorAs(t, err, &report)
		for _, p := range report.Problems {
			if !slices.Contains(beyondTheSchema(), p.Code) && (filepath.Dir(p.File) != "jobs.d") {
				assert.NotEmpty(t, exceptions[name], "%s: %s", name, p)
			}
		}
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(SchemaJSON()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(SchemaName, doc))
	s, err := c.Compile(SchemaName) // checks it against draft-07, too
	require.NoError(t, err)
	return s
}

// plain is what a YAML reader of an editor makes of a file; false when it is no YAML.
func plain(t *testing.T, data []byte) (any, bool) {
	t.Helper()
	f := findings{source: &source{name: "f"}}
	text := f.screenBytes(data)
	if !f.none() {
		return nil, false
	}
	root := f.parseTree(text)
	if !f.none() {
		return nil, false
	}
	return plainNode(t, root), true
}

func plainNode(t *testing.T, n *node) any {
	t.Helper()
	switch {
	case n == nil || n.kind == kindNull:
		return nil
	case n.kind == kindBool:
		return strings.EqualFold(n.text, "true")
	case n.kind == kindInteger, n.kind == kindFloat:
		if v, err := strconv.ParseInt(n.text, 0, 64); err == nil {
			return json.Number(strconv.FormatInt(v, 10))
		}
		return json.Number(n.text)
	case n.kind == kindText:
		return n.text
	case n.kind == kindList:
		items := []any{}
		for _, item := range n.items {
			items = append(items, plainNode(t, item))
		}
		return items
	default:
		pairs := map[string]any{}
		for _, p := range n.pairs {
			pairs[p.key.text] = plainNode(t, p.value)
		}
		return pairs
	}
}

func TestSchemaAndLoaderAgreeOnGoodFiles(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	files := fixtures(t, "good", 5)
	maps.Copy(files, fixtures(t, "lint", 5))
	files["sample"] = []byte(Sample)
	for path, data := range files {
		value, ok := plain(t, data)
		require.True(t, ok, path)
		assert.NoError(t, schema.Validate(value), path)
	}
}

func TestSchemaAndLoaderAgreeOnBadFiles(t *testing.T) {
	t.Parallel()
	schema, listed := compileSchema(t), onlyTheLoader()
	for path, data := range fixtures(t, "bad", 50) {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		value, ok := plain(t, data)
		if !ok {
			assert.Empty(t, listed[name], "%s is no YAML at all", name)
			continue
		}
		err := schema.Validate(value)
		if listed[name] != "" {
			require.NoError(t, err, "%s: the schema sees the fault, too; take it from the list", name)
			delete(listed, name)
			continue
		}
		require.Error(t, err, "%s: the schema accepts what the loader refuses", name)
	}
	assert.Empty(t, listed, "there are no such files")
}

// TestSchemaNeverRefusesWhatTheLoaderAccepts changes the good files at every value in every way, and asks both.
func TestSchemaNeverRefusesWhatTheLoaderAccepts(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	both, neither := 0, 0
	for path, data := range fixtures(t, "good", 5) {
		// What takes long is whether a jitter is too long, which no schema knows.
		value, ok := plain(t, regexp.MustCompile(`jitter: \w+`).ReplaceAll(data, []byte("jitter: 0s")))
		require.True(t, ok)
		for _, changed := range mutations(value) {
			text, err := json.Marshal(changed)
			require.NoError(t, err)
			_, err = Parse("f", text, fixtureOptions())
			refused := schema.Validate(changed)
			if err != nil && !seenByValue(err) {
				continue // only the loader can know
			}
			if (err == nil) != (refused == nil) {
				t.Fatalf("%s:\n%s\nloader: %v\nschema: %v", path, text, err, refused)
			}
			if err == nil {
				both++
			} else {
				neither++
			}
		}
	}
	assert.Greater(t, both, 200)
	assert.Greater(t, neither, 1000)
}

// seenByValue reports whether one of the problems is such as a schema sees: unknown keys, wrong types, wrong words.
func seenByValue(err error) bool {
	var report *Errors
	if !errors.As(err, &report) || strings.Contains(err.Error(), "${WORD}") { // what it holds nobody can see
		return false
	}
	return slices.ContainsFunc(report.Problems, func(p Problem) bool {
		return slices.Contains([]string{codeUnknownKey, codeChoice, codeDuration, codeType}, p.Code)
	})
}

// mutations are copies of a value with one of its parts changed, removed, or one added.
func mutations(value any) []any {
	var all []any
	others := []any{nil, true, 7, "x", "", []any{}, map[string]any{}, []any{"x"}, map[string]any{"x": "y"}, "3w", "${WORD}"}
	if _, scalar := value.(string); scalar {
		others = []any{nil, 7, []any{"x"}, map[string]any{"x": "y"}, "3w"}
	}
	all = append(all, others...)
	switch v := value.(type) {
	case map[string]any:
		added := maps.Clone(v)
		added["no_such_key"] = "x"
		all = append(all, added)
		for key, part := range v {
			without := maps.Clone(v)
			delete(without, key)
			all = append(all, without)
			for _, other := range mutations(part) {
				changed := maps.Clone(v)
				changed[key] = other
				all = append(all, changed)
			}
		}
	case []any:
		for i, part := range v {
			for _, other := range mutations(part) {
				changed := slices.Clone(v)
				changed[i] = other
				all = append(all, changed)
			}
		}
	}
	return all
}

// TestSchemaIsClosed: every map with fixed keys refuses others, and every key has its sentence.
func TestSchemaIsClosed(t *testing.T) {
	t.Parallel()
	var root map[string]any
	require.NoError(t, json.Unmarshal(SchemaJSON(), &root))
	tables := 0
	var visit func(path string, s map[string]any)
	visit = func(path string, s map[string]any) {
		if properties, ok := s["properties"].(map[string]any); ok {
			tables++
			assert.Equal(t, false, s["additionalProperties"], path)
			for key, property := range properties {
				p, _ := property.(map[string]any)
				assert.NotEmpty(t, p["description"], path+"."+key)
			}
		}
		for key, part := range s {
			switch p := part.(type) {
			case map[string]any:
				visit(path+"."+key, p)
			case []any:
				for i, item := range p {
					if one, ok := item.(map[string]any); ok {
						visit(fmt.Sprintf("%s.%s.%d", path, key, i), one)
					}
				}
			}
		}
	}
	visit("", root)
	assert.Greater(t, tables, 20)
}

// TestDefaultsAreValid: what the schema offers as a default it accepts.
func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	defaults := map[string]any{"jobs": map[string]any{}}
	var d daemonDraft
	walk(daemonFields(), &d, "", func(l leaf) {
		if s := l.sink.schema(); l.initial != "" && !strings.Contains(l.path, ".") {
			defaults[l.path] = s.value(l.initial)
		}
	})
	require.Equal(t, 1, defaults["version"])
	require.Equal(t, 16, defaults["capacity"])
	require.Equal(t, false, defaults["behind_proxy"])
	text, err := json.Marshal(defaults)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, compileSchema(t).Validate(value))
}

// TestSampleNamesItsSchema: the line that editors look for is the first one.
func TestSampleNamesItsSchema(t *testing.T) {
	t.Parallel()
	first, _, _ := strings.Cut(Sample, "\n")
	assert.Equal(t, "# yaml-language-server: $schema=./"+SchemaName, first)
	dir := t.TempDir()
	_, err := WriteSample(dir)
	require.NoError(t, err)
	written, err := os.ReadFile(filepath.Join(dir, SchemaName))
	require.NoError(t, err)
	assert.Equal(t, string(SchemaJSON()), string(written))
}
