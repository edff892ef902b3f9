package daemon

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/configs"
)

// TestExposure is the whole table: who may reach the listener, and what it then needs.
func TestExposure(t *testing.T) {
	t.Parallel()
	here := []string{
		"127.0.0.1:8420", "127.1.2.3:0", "[::1]:1", "localhost:1", "[::ffff:127.0.0.1]:1", "unix:/run/x.sock", "unix:x.sock",
	}
	elsewhere := []string{
		"0.0.0.0:8420", ":8420", "[::]:8420", "192.0.2.1:1", "[2001:db8::1]:1", "example.com:1", "localhost.example.com:1",
		"LOCALHOST.:1", "127.0.0.1.example.com:1", "[fe80::1%lo]:1", "0:1", "127.0.0.1",
	}
	for _, listen := range here {
		for _, c := range []configs.Config{{}, {Auth: configs.Auth{None: true}}, {BehindProxy: true}} {
			c.Listen = listen
			require.NoError(t, checkExposure(&c), listen)
		}
	}
	pair := configs.TLS{Cert: "a", Key: "b"}
	for _, listen := range elsewhere {
		for name, row := range map[string]struct {
			config configs.Config
			want   string
		}{
			"tokens":            {configs.Config{}, "in clear"},
			"tokens, tls":       {configs.Config{TLS: pair}, ""},
			"tokens, proxy":     {configs.Config{BehindProxy: true}, ""},
			"none":              {configs.Config{Auth: configs.Auth{None: true}}, "lets everybody in"},
			"none, tls":         {configs.Config{Auth: configs.Auth{None: true}, TLS: pair}, "lets everybody in"},
			"none, proxy":       {configs.Config{Auth: configs.Auth{None: true}, BehindProxy: true}, "lets everybody in"},
			"none, with tokens": {configs.Config{Auth: configs.Auth{None: true, Tokens: make([]configs.Token, 1)}, TLS: pair}, "lets everybody in"},
		} {
			row.config.Listen = listen
			err := checkExposure(&row.config)
			if row.want == "" {
				require.NoError(t, err, "%s on %s", name, listen)
				continue
			}
			var exposed *ExposedError
			require.ErrorAs(t, err, &exposed, "%s on %s", name, listen)
			assert.Contains(t, exposed.Reason, row.want, "%s on %s", name, listen)
			assert.Contains(t, exposed.Reason, listen)
			assert.NotEmpty(t, exposed.Remedy)
		}
	}
}

// No caller can forget the rule: there is no daemon without it.
func TestNewRefusesAnExposedListener(t *testing.T) {
	t.Parallel()
	_, err := New(Options{
		Config: &configs.Config{Listen: ":0"}, Getenv: func(string) string { return "" }, Log: zap.NewNop(), Audit: zap.NewNop(),
	})
	var exposed *ExposedError
	require.ErrorAs(t, err, &exposed)
}
