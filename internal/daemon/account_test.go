package daemon

import (
	"os/user"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/supervisor"
	"github.com/cronlatch/cronlatch/jobs"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	root, err := user.LookupId("0")
	require.NoError(t, err)
	other, err := user.Lookup("nobody")
	require.NoError(t, err)
	uid, err := strconv.Atoi(other.Uid)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		job  jobs.Job
		euid int
		uid  int // -1 is the daemon's
		err  string
	}{
		"none":                {jobs.Job{}, 0, -1, ""},
		"none, not root":      {jobs.Job{}, 1000, -1, ""},
		"a name":              {jobs.Job{User: "nobody"}, 0, uid, ""},
		"a number":            {jobs.Job{User: other.Uid}, 0, uid, ""},
		"two numbers":         {jobs.Job{User: "4711:4712"}, 0, 4711, ""},
		"not root":            {jobs.Job{User: "nobody"}, 1000, 0, "needs a daemon that is root, and this one is the account 1000"},
		"nobody's number":     {jobs.Job{User: "4711"}, 0, 0, `there is no account 4711 on this host`},
		"nobody's name":       {jobs.Job{User: "no-such-account"}, 0, 0, "there is no account no-such-account"},
		"root by its name":    {jobs.Job{User: root.Username}, 0, 0, "is root on this host; write allow_root: true"},
		"root, allowed":       {jobs.Job{User: root.Username, AllowRoot: true}, 0, 0, ""},
		"root in two numbers": {jobs.Job{User: "0:4712"}, 0, 0, "is root on this host"},
	} {
		i, err := identityOf(&c.job, c.euid)
		switch {
		case c.err != "":
			require.ErrorContains(t, err, c.err, name)
		case c.uid < 0:
			assert.Equal(t, identity{}, i, name)
		default:
			if assert.NoError(t, err, name) {
				assert.Equal(t, c.uid, i.account.UID, name)
			}
		}
	}
	pair, err := identityOf(&jobs.Job{User: "4711:4712"}, 0)
	require.NoError(t, err)
	assert.Equal(t, identity{account: &supervisor.Account{UID: 4711, GID: 4712, Groups: []int{}}, home: "/"}, pair)
	env := pair.getenv(func(name string) string { return "daemon's " + name })
	assert.Equal(t, "/", env("HOME"))
	assert.Empty(t, env("USER")+env("LOGNAME")+env("SHELL"))
	assert.Equal(t, "daemon's PATH", env("PATH"))
}

func TestADaemonThatIsRootSaysSo(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zapcore.InfoLevel)
	config, err := configs.Parse("f", []byte("jobs:\n  a: {run: x}\n  b: {run: x, user: nobody}\n  c: {http: {url: \"https://example.com\"}}\n"), configs.Options{})
	require.NoError(t, err)
	d := &Daemon{o: Options{Config: config, Log: zap.New(core)}}
	d.warnOfRoot(1000)
	assert.Zero(t, lines.Len())
	d.warnOfRoot(0)
	require.Equal(t, 1, lines.Len())
	assert.Equal(t, []any{"a"}, lines.All()[0].ContextMap()["names"])
	config.Jobs = slices.DeleteFunc(config.Jobs, func(j *jobs.Job) bool { return j.Name == "a" })
	d.warnOfRoot(0)
	assert.Equal(t, 1, lines.Len(), "there is nothing to say")
}

func TestHistoryIsThatOfTheLastConfiguration(t *testing.T) {
	t.Parallel()
	d := &Daemon{config: &configs.Config{History: jobs.History{Keep: 5}}}
	assert.Equal(t, 5, d.history().Keep)
	d.config = &configs.Config{History: jobs.History{Keep: 6}}
	assert.Equal(t, 6, d.history().Keep)
	assert.Empty(t, needRestart(&configs.Config{}, &configs.Config{History: jobs.History{Keep: 6}, Channels: map[string]jobs.Channel{"a": {}}}))
	assert.Equal(t, []string{"tracing.endpoint"}, needRestart(&configs.Config{}, &configs.Config{Tracing: configs.Tracing{Endpoint: "x"}}))
}
