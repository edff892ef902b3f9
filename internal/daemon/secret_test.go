package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// A secret in a file is followed like the configuration: when it is missing, when it comes, when it is another one. None
// of it is in the audit.
func TestReloadWhenASecretChanges(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	secret := func(value string) {
		next := filepath.Join(folder, ".next")
		require.NoError(t, os.WriteFile(next, []byte(value+"\n"), 0o600))
		require.NoError(t, os.Rename(next, filepath.Join(folder, "pg")))
	}
	f := bootOnFile(t, dbtest.SQLiteURL(t), "history: {keep: 5}\njobs: {}\n", func(o *Options) { o.Watch = true })
	defer f.leave(t)
	count := func(action string, n int) func() bool { return func() bool { return len(f.actions(action)) == n } }

	f.write(t, "history: {keep: 6}\nchannels: {ops: {webhook: {url: \"https://example.com\", secret: \"${file:"+folder+"/pg}\"}}}\n"+
		"jobs: {a: {run: \"true\", secrets: {PG: \"${file:"+folder+"/pg}\"}}}\n")
	f.waitFor(t, "a secret that is not there", count("config.reject", 1))
	secret("hunter2-canary")
	f.waitFor(t, "now it is", count("job.define", 1))
	secret("hunter3-canary")
	f.waitFor(t, "and another one", count("job.define", 2))
	f.write(t, "history: {keep: 7}\njobs: {a: {run: \"true\"}}\n")
	f.waitFor(t, "without a restart", count("job.define", 3))
	assert.Len(t, f.actions("config.reject"), 1)
	for _, line := range f.log.All() {
		assert.NotContains(t, fmt.Sprint(line.Message, line.ContextMap()), "canary")
	}
	for _, line := range f.audit.All() {
		assert.NotContains(t, fmt.Sprint(line.Message, line.ContextMap()), "canary")
	}
}
