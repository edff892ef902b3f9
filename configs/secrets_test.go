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

// TestWhatLooksLikeASecretIsHidden: under a key that nobody knows, in a file that cannot be read, in one that is none at
// all, and under a known key by its name or its form. None of these files has said what is a secret.
func TestWhatLooksLikeASecretIsHidden(t *testing.T) {
	t.Parallel()
	const broken = "\n]: [\n"
	for _, file := range []string{
		"jobs: {a: {run: x, secrts: {PGPASSWORD: CANARY}}}",
		"jobs: {a: {run: x, sekretz: {A: CANARY}, sekretz: {A: CANARY}}}",
		"jobs: {a: {run: x, geheim: CANARY}}",
		"jobs: {a: {run: x, geheim: [CANARY, [CANARY]]}}",
		"autth: {tokens: [CANARY]}\njobs: {}",
		"auth: {tokens: [CANARY]}\njobs: {}",
		"auth: {tokens: {admin: CANARY}}\njobs: {}",
		"auth: CANARY\njobs: {}",
		"database: {ulr: \"postgres://u:CANARY@h/db\"}\njobs: {}",
		"database: {url: \"postgres://u:CANARY/1@h/db\", x: 1}\njobs: {}",
		"database: {url: \"postgres://u:CAN@RY@h/db\", x: 1}\njobs: {}",
		"database: {url: \"postgres://h/db?password=CANARY&a=b\", x: 1}\njobs: {}",
		"databse: \"sqlite:CANARY\"\njobs: {}",
		"channels: {a: {webhok: {url: \"https://h/CANARY\"}}}\njobs: {}",
		"jobs: {a: {run: x, env: {API_TOKEN: CANARY, X: 1}}}",
		"jobs: {a: {run: x, env: {MY_API_KEY: CANARY, X: 1}}}",
		"jobs: {a: {run: \"PGPASSWORD=CANARY pg_dump\", schedul: x}}",
		"jobs: {a: {command: [curl, -H, \"Authorization: Bearer CANARY\"], schedul: x}}",
		"jobs: {a: {http: {url: \"https://h\", headers: {Authorization: CANARY}, x: 1}}}",
		"CANARY",
		"- CANARY",
		"PGPASSWORD=CANARY",
		"PGPASSWORD=CANARY\nX: y",
		"-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----",
		"'CANARY",
		"secrts: {A: CANARY",
		"secrts: {A: \"x: CANARY\", B: CANARY: x",
		"jobs:\n  a:\n    run: x\n    secrts:\n      A: CANARY: x",
		"jobs:\n  a:\n    run: x\n    geheim: CANARY: x",
		"jobs:\n  a:\n    run: x\n    env:\n      PGPASS: !CANARY x",
		"jobs:\n  a:\n    run: x\n    geheim: *CANARY",
		"jobs:\n  a:\n    run: x\n    geheim: &CANARY",
		"auth:\n  tokens:\n    - \"CANARY",
		"autth:\n  tokns:\n    - \"CANARY",
		"channels: {a: {slack: {url: \"https://h/CANARY\"}}",
		"jobs: {a: {run: x, ping: https://h/CANARY: x}}",
		"tracing: {headers: {A: CANARY}", "tracing:\n\theaders: {A: CANARY}",
		"database: postgres://u:CANARY@h: x",
		"password CANARY" + broken, "a: " + strings.Repeat("x", 500) + " CANARY: x" + broken,
		"jobs: {a: {run: x, geheim: CANARY}}" + broken,
	} {
		for _, secret := range []string{"hunter2-canary", "s3cr3t"} {
			_, err := Parse("f", []byte(strings.ReplaceAll(file, "CANARY", secret)), Options{})
			require.Error(t, err, file)
			assert.NotContains(t, err.Error(), secret, file)
			assert.NotContains(t, err.Error(), "CAN@RY", file)
		}
	}
}

// TestWhatIsHiddenLeavesTheFaultVisible: keys, brackets, quotes and columns stay, and so do the values of known keys.
func TestWhatIsHiddenLeavesTheFaultVisible(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"jobs: {a: {run: x, schedul: \"0 2 * * *\"}}":                 "jobs: {a: {run: x, schedul: \"0 2 * * *\"}}",
		"jobs: {a: {run: x, frobnicate: \"0 2 * * *\", timeot: 5m}}":  "jobs: {a: {run: x, frobnicate: \"*********\", timeot: 5m}}",
		"jobs: {a: {run: x, frob: {A: [b, \"c\"]}, tags: [d]":         "jobs: {a: {run: x, frob: {A: [*, \"*\"]}, tags: [d]",
		"jobs: {a: {run: x, frob: \"${file:/run/x}\", tags: [d]":      "jobs: {a: {run: x, frob: \"${file:/run/x}\", tags: [d]",
		"jobs: {a: {run: x, frob: \"${X:-c}\", tags: [d]":             "jobs: {a: {run: x, frob: \"*{****}\", tags: [d]",
		"jobs:\n  api-token: {run: x, timeout: 5}":                    "  api-token: {run: x, timeout: 5}",
		"jobs:\n  a:\n    description: Report: monthly":               "    description: Report: monthly",
		"jobs:\n  a:\n    command:\n    - a\n    - b: c: d":           "    - b: ** *",
		"jobs:\n  a:\n    schedule \"0 2 * * *\"\n    run: x":         "    schedule \"0 2 * * *\"",
		"listen: \"http://h:80/p\"\njobs: {}":                         "listen: \"http://h:80/p\"",
		"jobs: {a: {run: \"TOKEN=abcdef PASSWORD='x y' z\", tags: 1}": "jobs: {a: {run: \"TOKEN=****** PASSWORD='* *' z\", tags: 1}",
	} {
		_, err := Parse("f", []byte(file), Options{})
		var bad *Errors
		require.ErrorAs(t, err, &bad)
		line, _, _ := strings.Cut(bad.Problems[0].Snippet, "\n")
		_, shown, _ := strings.Cut(line, " | ")
		assert.Equal(t, want, shown, file)
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
