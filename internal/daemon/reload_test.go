package daemon

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/jobs"
)

// onFile is a daemon whose configuration is a file.
type onFile struct {
	*served

	path string
}

const fileHead = "version: 1\nlisten: 127.0.0.1:0\nauth: none\n"

func (f *onFile) write(t *testing.T, yaml string) {
	t.Helper()
	replace(t, f.path, fileHead+yaml)
}

// replace gives a file another content, in place and in one step: who reads it meanwhile finds the old text or the new one, and
// not the half of it, which would be one more file to reject. A new file comes whole, too.
func replace(t *testing.T, path, text string) {
	t.Helper()
	const size = 1024 // of all texts, so that nothing must be cut off
	require.Less(t, len(text), size)
	block := []byte(text + strings.Repeat("\n", size-len(text)))
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		writeFile(t, path, block)
		return
	}
	require.NoError(t, err)
	_, err = file.Write(block)
	require.NoError(t, errors.Join(err, file.Close()))
}

// bootOnFile boots a daemon on a file of its own.
func bootOnFile(t *testing.T, url, yaml string, change func(*Options)) *onFile {
	t.Helper()
	f := &onFile{}
	f.served = serve(t, url, yaml, func(o *Options) {
		f.path = filepath.Join(o.Dir, "cronlatch.yaml")
		f.write(t, yaml)
		o.Reload = func() (*configs.Config, error) { return configs.Load(f.path, configs.Options{}) }
		var err error
		o.Config, err = o.Reload()
		require.NoError(t, err)
		if change != nil {
			change(o)
		}
	})
	return f
}

// actions are the audit's lines with an action.
func (s *served) actions(action string) (lines []map[string]any) {
	for _, l := range s.audit.FilterField(zap.String("event.action", action)).All() {
		lines = append(lines, l.ContextMap())
	}
	return lines
}

func (s *served) reload(t *testing.T) (status int, answer map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/-/reload", http.NoBody)
	require.NoError(t, err)
	resp, err := s.client.Do(req)
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, answer
}

// P10: what is wrong changes nothing, and the answer, the log and the audit say where it is.
func TestReloadByTheAPI(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		f := bootOnFile(t, url, "jobs: {stays: {run: \"true\"}, changes: {run: \"true\"}, goes: {run: \"true\"}}\n", nil)
		defer f.leave(t)
		first := f.actions("config.load")
		require.Len(t, first, 1)
		assert.InDelta(t, 3, first[0]["jobs"], 0)

		f.write(t, `jobs: {stays: {run: "true"}, changes: {run: "false"}, comes: {schedule: "* * * * * *", seconds: true, run: "true"}}`)
		status, got := f.reload(t)
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, []any{[]any{"comes"}, []any{"goes"}, []any{"changes"}, 3.0}, []any{got["added"], got["removed"], got["changed"], got["jobs"]})
		assert.NotEqual(t, first[0]["definitions"], got["definitions"])
		loads := f.actions("config.load")
		require.Len(t, loads, 2)
		assert.Equal(t, []any{got["definitions"], "user", "(anonymous)", "a"},
			[]any{loads[1]["definitions"], loads[1]["actor.type"], loads[1]["actor.id"], loads[1]["replica"]})
		defined, removed := f.actions("job.define"), f.actions("job.remove")
		require.Len(t, defined, 2)
		assert.Equal(t, []any{"comes", "changes"}, []any{defined[0]["job"], defined[1]["job"]})
		require.Len(t, removed, 1)
		assert.Equal(t, "goes", removed[0]["job"])
		waitForRuns(t, url, 1)

		f.write(t, "jobs: {stays: {run: \"true\", timeout: soon}}\n")
		status, got = f.reload(t)
		assert.Equal(t, http.StatusUnprocessableEntity, status)
		list, ok := got["errors"].([]any)
		require.True(t, ok && len(list) == 1, got)
		wrong, ok := list[0].(map[string]any)
		require.True(t, ok)
		assert.Equal(t, []any{"cronlatch.yaml", 4.0, 38.0, "duration"}, []any{wrong["field"], wrong["line"], wrong["column"], wrong["code"]})
		rejected := f.actions("config.reject")
		require.Len(t, rejected, 1)
		assert.Equal(t, []any{"invalid", "failure"}, []any{rejected[0]["reason"], rejected[0]["event.outcome"]})
		assert.Contains(t, rejected[0]["problems"].([]any)[0], "cronlatch.yaml:4:38: ") //nolint:forcetypeassert // zap.Strings
		assert.Equal(t, 1, f.log.FilterMessageSnippet("rejected").Len())
		assert.Equal(t, http.StatusOK, f.status(t, "/readyz"), "the old jobs are as good as before")
		before := len(waitForRuns(t, url, 1))
		waitForRuns(t, url, before+1)
	})
}

func TestKeysThatNeedARestart(t *testing.T) {
	t.Parallel()
	f := bootOnFile(t, dbtest.SQLiteURL(t), "jobs: {a: {run: \"true\"}}\n", nil)
	defer f.leave(t)
	f.write(t, "lock: {ttl: 20s}\ncapacity: 3\njobs: {b: {run: \"true\"}}\n")
	status, got := f.reload(t)
	assert.Equal(t, http.StatusConflict, status)
	assert.Equal(t, "restart", got["code"])
	text, err := json.Marshal(got["errors"])
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"field": "capacity", "code": "restart", "message": "only a restart can change this key"},
		{"field": "lock.ttl", "code": "restart", "message": "only a restart can change this key"}]`, string(text))
	rejected := f.actions("config.reject")
	require.Len(t, rejected, 1)
	assert.Equal(t, "restart", rejected[0]["reason"])
	assert.Empty(t, f.actions("job.define"), "not even the jobs: all or nothing")

	require.NoError(t, os.Remove(f.path))
	status, got = f.reload(t)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "unreadable", got["code"])
	assert.NotContains(t, got["detail"], f.path)
	f.write(t, "jobs: {a: {run: \"true\"}}\n")
	status, got = f.reload(t)
	assert.Equal(t, http.StatusOK, status)
	assert.Empty(t, got["added"], "it is what it was")
}

// A field that somebody adds to the configuration needs a restart until somebody makes it follow, under a name that the
// documentation knows.
func TestEveryKeyIsNamed(t *testing.T) {
	t.Parallel()
	reference, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	var keys []string
	old, next := reflect.ValueOf(configs.Config{}), reflect.ValueOf(filled(t))
	differing(old, next, "", func(key string) { keys = append(keys, key) })
	assert.Subset(t, keys, []string{
		"listen", "database.url", "auth", "auth.tokens", "auth.token_file", "tls.cert", "tls.key", "behind_proxy", "allowed_hosts",
		"lock.ttl", "lock.takeover_grace", "lock.keep_for", "labels", "capacity", "drain_timeout", "log.level", "log.format",
	})
	for _, key := range keys {
		assert.True(t, strings.Contains(string(reference), "`"+key+"`"), key) //nolint:testifylint // the page is long
	}
}

// filled is a configuration in which every field but the jobs is set.
func filled(t *testing.T) configs.Config {
	t.Helper()
	var c configs.Config
	fill(t, reflect.ValueOf(&c).Elem())
	return c
}

func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		require.Fail(t, "a kind of field that this test does not know", v.Kind().String())
	}
}

// A reload in the middle of a start is not lost: the daemon begins with the new jobs.
func TestAReloadDuringTheStart(t *testing.T) {
	t.Parallel()
	o, _ := options(t, dbtest.SQLiteURL(t), "jobs: {a: {run: \"true\"}}\n")
	next, err := configs.Parse(o.Config.Path, []byte("version: 1\nlisten: 127.0.0.1:0\njobs: {b: {run: \"true\"}}\n"), configs.Options{})
	require.NoError(t, err)
	o.Reload = func() (*configs.Config, error) { return next, nil }
	d, err := New(o)
	require.NoError(t, err)
	r, err := d.Reload(BySignal)
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, r.Added)
	assert.Same(t, next, d.config, "which attach takes")

	d.state.Store(stateDraining)
	_, err = d.Reload(BySignal)
	require.ErrorIs(t, err, ErrLeaving)
	d.o.Reload = nil
	_, err = d.Reload(BySignal)
	require.ErrorIs(t, err, ErrNoReload)
}

// A reload never waits for a run: the old one ends as it was defined, the next one has the new definition.
func TestAReloadDoesNotWaitForARun(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	gate := filepath.Join(t.TempDir(), "gate")
	f := bootOnFile(t, url, `jobs: {long: {schedule: "* * * * * *", seconds: true, run: "while [ ! -e `+gate+` ]; do sleep 0.05; done"}}`, nil)
	defer f.leave(t)
	require.Eventually(t, func() bool { return len(f.actions("run.start")) > 0 }, patience, 20*time.Millisecond)
	f.write(t, "jobs: {}\n")
	status, got := f.reload(t)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, []any{"long"}, got["removed"])
	running, err := ledger(t, url).List(t.Context(), jobs.RunFilter{State: jobs.StateRunning})
	require.NoError(t, err)
	require.Len(t, running, 1)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	done := waitForRuns(t, url, 1)
	assert.Equal(t, running[0].ID, done[0].ID)
}
