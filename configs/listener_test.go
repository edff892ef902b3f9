package configs

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListener(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/listener.yaml")
	require.NoError(t, err)
	c := mustParse(t, string(data))
	until := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, Auth{
		TokenFile: "/var/lib/cronlatch/token",
		Tokens: []Token{
			{ID: "ops", SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Role: RoleAdmin},
			{ID: "ci-1", SHA256: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752", Role: RoleLocker, Prefix: "deploy:", ExpiresAt: until.Add(-time.Hour)},
			{ID: "board", SHA256: "fd61a03af4f77d870fc21e05e7e80678095c92d808cfb3b5c279ee04c74aca13", Role: RoleViewer, ExpiresAt: until},
		},
	}, c.Auth)
	assert.True(t, c.Auth.HasAdmin())
	assert.Equal(t, TLS{Cert: "tls.crt", Key: "/run/secrets/tls.key"}, c.TLS)
	assert.Equal(t, "tls.crt", c.File(c.TLS.Cert), "beside the file, whose folder is .")
	assert.Equal(t, "/run/secrets/tls.key", c.File(c.TLS.Key))
	assert.True(t, c.TLS.Enabled())
	assert.True(t, c.BehindProxy)
	assert.Equal(t, []string{"locks.example.com", "192.0.2.1", "::1"}, c.AllowedHosts)
	assert.Equal(t, 30*24*time.Hour, c.Lock.KeepFor)
}

// Authentication is on unless somebody turned it off in so many words.
func TestAuthenticationIsTheDefault(t *testing.T) {
	t.Parallel()
	for text, none := range map[string]bool{
		"": false, "auth: tokens\n": false, "auth: {}\n": false, "auth: {tokens: []}\n": false, "auth: none\n": true,
	} {
		c := mustParse(t, text+"jobs: {}\n")
		assert.Equal(t, Auth{None: none, TokenFile: DefaultTokenFile}, Auth{None: c.Auth.None, TokenFile: c.Auth.TokenFile}, text)
		assert.False(t, c.Auth.HasAdmin(), text)
	}
}

// A flag or a variable turns authentication on and off and keeps the tokens of the file.
func TestAuthenticationFromOutside(t *testing.T) {
	t.Parallel()
	const none, tokens = "auth: none\njobs: {}\n",
		`auth: {tokens: [{id: a, sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", role: viewer}]}` + "\njobs: {}\n"
	load := func(text string, o Options) Auth {
		c, err := Parse("f", []byte(text), o)
		require.NoError(t, err)
		return c.Auth
	}
	env := func(pairs map[string]string) Options {
		return Options{Getenv: func(name string) string { return pairs[name] }}
	}
	assert.False(t, load(none, env(map[string]string{"CRONLATCH_AUTH": "tokens"})).None)
	off := load(tokens, Options{Flags: map[string]string{"auth": "none", "auth.token_file": "x"}})
	assert.True(t, off.None)
	assert.Len(t, off.Tokens, 1)
	assert.Equal(t, "x", off.TokenFile)
	assert.Equal(t, "y", load(tokens, env(map[string]string{"CRONLATCH_TOKEN_FILE": "y"})).TokenFile)
}

func TestTLSFromOutside(t *testing.T) {
	t.Parallel()
	flags := map[string]string{"tls.cert": "a.crt", "tls.key": "a.key", "behind_proxy": "true"}
	c, err := Parse("f", []byte("jobs: {}\n"), Options{Flags: flags})
	require.NoError(t, err)
	assert.Equal(t, TLS{Cert: "a.crt", Key: "a.key"}, c.TLS)
	assert.True(t, c.BehindProxy)

	delete(flags, "tls.cert")
	flags["auth.token_file"] = "\x00"
	_, err = Parse("f", []byte("jobs: {}\n"), Options{Flags: flags})
	require.EqualError(t, err, `--tls-key: tls.key is set and tls.cert is not; a listener needs both  [required]
--token-file: auth.token_file holds a NUL character, which no program can be given  [encoding]
2 errors in the flags. Nothing was loaded.`)
}
