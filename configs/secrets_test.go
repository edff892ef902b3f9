package configs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

const secretFile = `
tracing: {endpoint: "http://c:4318", headers: {Authorization: "Bearer ${SECRET}"}}
channels:
  ops: {webhook: {url: "https://example.com/${SECRET}", secret: "${SECRET}"}}
  chat: {slack: {url: "https://example.com/${SECRET}"}}
  mail: {email: {server: "m:25", username: u, password: "${SECRET}", from: a@b.c, to: [a@b.c]}}
jobs:
  a:
    run: x
    secrets: {PG: "${file:/run/secrets/pg}", TOKEN: "${SECRET}", PLAIN: hunter2-canary}
    ping: "https://example.com/${SECRET}"
    on_failure: {run: y, secrets: {MORE: "${SECRET}-2"}}
`

// TestSecretsPrintAsStars: whatever is printed of a configuration.
func TestSecretsPrintAsStars(t *testing.T) {
	t.Parallel()
	c := mustParse(t, secretFile)
	text, err := json.Marshal(c.Jobs[0].Secrets)
	require.NoError(t, err)
	var all strings.Builder
	all.Write(text)
	for _, v := range []any{c.Jobs[0].Secrets, c.Jobs[0].Ping, c.Channels["ops"].Webhook, c.Channels["chat"].Slack, c.Channels["mail"].Email, c.Tracing} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		fmt.Fprintf(&all, "%s%v %+v %#v %s", text, v, v, v, v)
	}
	assert.Contains(t, all.String(), "***")
	assert.NotContains(t, all.String(), "canary")

	assert.Equal(t, canary, c.Jobs[0].Secrets["PG"].Reveal(), "without the newline that ends the file")
	assert.Equal(t, "https://example.com/"+canary, c.Jobs[0].Ping.Reveal())
	assert.Equal(t, "Bearer "+canary, c.Tracing.Headers["Authorization"].Reveal())
	assert.Equal(t, canary, c.Channels["mail"].Email.Password.Reveal())
	hook := c.Jobs[1]
	assert.Equal(t, "a#on_failure", hook.Name)
	assert.Len(t, hook.Secrets, 4, "those of its job and its own")
	assert.Len(t, c.Jobs[0].Secrets, 3)
}

// TestSecretsAreInTheHash: a replica that has another secret is seen, and its hash does not say which one.
func TestSecretsAreInTheHash(t *testing.T) {
	t.Parallel()
	hashOf := func(job string) string { return mustParse(t, "jobs:\n  a: {run: x, "+job+"}\n").Hash }
	seen := map[string]string{}
	for _, job := range []string{
		`timeout: 0s`, `secrets: {A: one}`, `secrets: {A: two}`, `secrets: {B: one}`, `ping: "https://example.com/1"`, `ping: "https://example.com/2"`,
		`user: nobody`, `user: daemon`, `user: root, allow_root: true`, `late_after: 5m`, `history: {keep: 1}`, `history: {keep_for: 1d}`,
		`params: {x: {}}`, `params: {x: {type: integer}}`, `params: {x: {default: ""}}`, `params: {x: {pattern: a}}`, `params: {x: {enum: [a]}}`,
		`params: {x: {leading_dash: true}}`, `params: {x: {description: a}}`, `params: {y: {}}`,
	} {
		h := hashOf(job)
		assert.Empty(t, seen[h], "%s has the hash of another one", job)
		seen[h] = job
	}
	assert.Equal(t, hashOf(`secrets: {A: one, B: two}`), hashOf(`secrets: {B: "two", A: "${UNSET:-one}"}`), "however it is written")
	assert.Equal(t, hashOf(`secrets: {}`), hashOf(`timeout: 0s`))

	c := mustParse(t, secretFile)
	d := jobDraft{}
	written, err := json.Marshal(d.definition(c.Jobs[0], fingerprints{}))
	require.NoError(t, err)
	assert.Contains(t, string(written), `"PLAIN"`)
	assert.NotContains(t, string(written), canary, "what is hashed is not the secret")
}

// TestNotifyOfAJobAndOfDefaults: each event is set for itself.
func TestNotifyOfAJobAndOfDefaults(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/notify.yaml")
	require.NoError(t, err)
	c := mustParse(t, string(data))
	assert.Equal(t, jobs.Notify{
		jobs.EventOverdue: {"mail"}, jobs.EventLate: {"chat"}, jobs.EventLost: {"mail", "ops"},
	}, c.Jobs[0].Notify)
	assert.Equal(t, jobs.Notify{
		jobs.EventFailure: {"ops"}, jobs.EventRecovery: {"ops"}, jobs.EventMissed: {"relay"}, jobs.EventOverdue: {"ops"},
	}, c.Jobs[1].Notify)
	assert.Equal(t, "starttls", c.Channels["mail"].Email.TLS)
	assert.Equal(t, "ops", c.Channels["ops"].Name)
	assert.Nil(t, c.Channels["ops"].Slack)
	assert.Empty(t, mustParse(t, "jobs: {a: {run: x}}").Jobs[0].Notify)
}

func TestWhoACommandRunsAs(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/account.yaml")
	require.NoError(t, err)
	c := mustParse(t, string(data))
	users := map[string]string{}
	for _, j := range c.Jobs {
		users[j.Name] = j.User
	}
	assert.Equal(t, map[string]string{"a": "nobody", "b": "root", "c": "1000", "d": "1000:1000", "d#on_failure": "1000:1000", "e": ""}, users)
	b, err := c.Job("b")
	require.NoError(t, err)
	assert.True(t, b.AllowRoot)
	assert.Equal(t, jobs.History{Keep: 1}, b.History, "the rest is what the top says")
	assert.Equal(t, jobs.History{Keep: 10, KeepFor: 7 * day}, c.History)
	hook := mustParse(t, "jobs: {a: {run: x, user: root, allow_root: true, on_failure: {run: y}}}").Jobs[1]
	assert.Equal(t, "root", hook.User, "a hook is who its job is")
	assert.True(t, hook.AllowRoot)
}

// TestFilesOfValuesAreFollowed: who follows the configuration hears of a secret that was changed, and of one that is missing.
func TestFilesOfValuesAreFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "cronlatch.yaml")
	require.NoError(t, os.WriteFile(path, []byte("jobs: {a: {run: x, secrets: {A: \"${file:se[c]ret}\", B: \"${file:se[c]ret}\"}}}\n"), 0o600))
	_, err := Load(path, Options{})
	var bad *Errors
	require.ErrorAs(t, err, &bad)
	want := []string{filepath.Join(dir, `se\[c]ret`)}
	assert.Equal(t, want, bad.Include)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "se[c]ret"), []byte("one\n"), 0o600))
	first, err := Load(path, Options{})
	require.NoError(t, err)
	assert.Equal(t, want, first.Include)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "se[c]ret"), []byte("two\n"), 0o600))
	second, err := Load(path, Options{})
	require.NoError(t, err)
	assert.NotEqual(t, first.JobHashes["a"], second.JobHashes["a"])
}

// TestNoSecretInAnySnippet breaks a file with secrets at every place, and looks at what is said.
func TestNoSecretInAnySnippet(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"jobs:\n  a:\n    run: x\n    secrets:\n      TOKEN: hunter2-canary\n      OTHER: \"hunter2-canary\"\n",
		"jobs:\n  a: {run: x, secrets: {TOKEN: hunter2-canary, OTHER: 'hunter2-canary'}}\n",
		"jobs:\n  a:\n    run: x\n    secrets: {TOKEN: \"hunter2-canary\"}\n",
	} {
		found := 0
		for i := range file {
			for _, c := range "]}:\t\"'&*{x-" {
				line := file[strings.LastIndexByte(file[:i], '\n')+1 : i]
				if inside(file, canary, i) || inside(file, "secrets", i) || strings.TrimSpace(line) == "" && line != "" {
					continue // it is another secret, another key, or a key of another map
				}
				_, err := Parse("f", []byte(file[:i]+string(c)+file[i:]), Options{})
				if err == nil || !strings.Contains(err.Error(), canary) {
					continue
				}
				found++
				if found < 5 {
					t.Errorf("%q at %d: %v", c, i, err)
				}
			}
		}
		assert.Zero(t, found)
	}
}

// inside reports whether the place is within one of the words.
func inside(file, word string, i int) bool {
	for at := 0; ; {
		next := strings.Index(file[at:], word)
		if next < 0 {
			return false
		}
		if at += next; i > at && i < at+len(word) {
			return true
		}
		at += len(word)
	}
}
