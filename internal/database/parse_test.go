package database_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/driver/pgdriver"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/cronlatch/cronlatch/internal/database"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

func TestParse(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"postgres://u@h/d":                               "postgres://u@h:5432/d?sslmode=verify-full",
		"postgresql://u@h/d":                             "postgres://u@h:5432/d?sslmode=verify-full",
		"postgres://u@h":                                 "postgres://u@h:5432/u?sslmode=verify-full",
		"postgres://u:p@h:6/d?sslmode=require":           "postgres://u:***@h:6/d?sslmode=require",
		"postgres://u@h/d?sslmode=require&sslrootcert=x": "postgres://u@h:5432/d?sslmode=verify-ca",
		"postgres://u@localhost/d":                       "postgres://u@localhost:5432/d?sslmode=allow",
		"postgres://u@127.0.0.9/d":                       "postgres://u@127.0.0.9:5432/d?sslmode=allow",
		"postgres://u@[::1]:6/d":                         "postgres://u@[::1]:6/d?sslmode=allow",
		"postgres://u@[2001:db8::1]/d":                   "postgres://u@[2001:db8::1]:5432/d?sslmode=verify-full",
		"postgres://u@a:1,b,c:3/d":                       "postgres://u@a:1,b:5432,c:3/d?sslmode=verify-full",
		"postgres://u@a,localhost/d?sslmode=disable":     "postgres://u@a:5432,localhost:5432/d?sslmode=disable",
		"postgres://u@%2Frun%2Fpg:6/d":                   "postgres://u@%2Frun%2Fpg:6/d?sslmode=disable",
		"postgres://u@/d?host=/run/pg&port=6":            "postgres://u@%2Frun%2Fpg:6/d?sslmode=disable",
		"postgres:///d?host=a,b&port=1,2&user=u":         "postgres://u@a:1,b:2/d?sslmode=verify-full",
		"postgres://u@/d":                                "postgres://u@localhost:5432/d?sslmode=allow",
		"postgres://me%40tenant@h/my%2Fdb":               "postgres://me@tenant@h:5432/my%2Fdb?sslmode=verify-full",
		"postgres://u@h/d?connect_timeout=3&target_session_attrs=any&application_name=a+b&search_path=s": "postgres://u@h:5432/d?sslmode=verify-full",
		"sqlite:/var/lib/x.db":   "sqlite:/var/lib/x.db",
		"sqlite:///var/lib/x.db": "sqlite:/var/lib/x.db",
		"sqlite:x.db":            "sqlite:/etc/cronlatch/x.db",
		"sqlite:../x.db":         "sqlite:/etc/x.db",
	} {
		target, err := database.Parse(raw, noEnv, "/etc/cronlatch")
		require.NoError(t, err, raw)
		assert.Equal(t, want, target.String(), raw)
		target, err = database.Parse(" "+raw+"\n", noEnv, "/etc/cronlatch")
		require.NoError(t, err, raw)
		assert.Equal(t, want, target.String(), "as read from a file: %s", raw)
	}
}

// canary stands where passwords stand, and must appear nowhere.
const canary = "C4nary"

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                                     "postgres://USER:PASSWORD@HOST/DATABASE or sqlite:PATH",
		"cronlatch.db":                                         "sqlite:PATH",
		"mysql://u:C4nary@h/d":                                 `"mysql" is not a database that cronlatch runs on`,
		"u:C4nary@h/d":                                         "a database URL is postgres://",
		"host=h password=C4nary":                               "a database URL is postgres://",
		"host=h:1 password=C4nary":                             "a database URL is postgres://",
		"postgres:u:C4nary@h/d":                                "begins with postgres://",
		"postgres://h/d":                                       "names no user",
		"postgres://u:C4nary%zz@h/d":                           "password is not percent-encoded",
		"postgres://u:C4nary%00@h/d":                           "password is not percent-encoded",
		"postgres://u:C4nary/x@h/d":                            "percent-encoded",
		"postgres://u:1/C4nary@h/d":                            "percent-encoded",
		"postgres://u:C4nary?x@h/d":                            "percent-encoded",
		"postgres://u:1?C4nary=x@h/d":                          "percent-encoded",
		"postgres://u:a@b?C4nary=1@h/d":                        "percent-encoded",
		"postgres://u:C4nary#x@h/d":                            "percent-encoded",
		"postgres://u:1#C4nary@h/d":                            "percent-encoded",
		"postgres://u:C4nary@h:x/d":                            "a port must be a number",
		"postgres://u:C4nary@h:0/d":                            "a port must be a number",
		"postgres://u:C4nary@h:70000/d":                        "a port must be a number",
		"postgres://u:C4nary@::1/d":                            "brackets",
		"postgres://u:C4nary@[::1/d":                           "brackets",
		"postgres://u:C4nary@h/d/e":                            "percent-encode",
		"postgres://u:C4nary@h/d?sslmode=x":                    "sslmode must be disable",
		"postgres://u:C4nary@h/d?timeout=0":                    "parameter timeout is not known",
		"postgres://u:C4nary@h/d?read_timeout=1":               "parameter read_timeout is not known",
		"postgres://u:C4nary@h/d?C4nary":                       "is not a name",
		"postgres://u:C4nary@h/d?connect_timeout=0":            "connect_timeout must be",
		"postgres://u:C4nary@h/d?connect_timeout=-5s":          "connect_timeout must be",
		"postgres://u:C4nary@h/d?connect_timeout=1h":           "connect_timeout must be",
		"postgres://u:C4nary@h/d?connect_timeout=C4nary":       "connect_timeout must be",
		"postgres://u:C4nary@h/d?target_session_attrs=standby": "target_session_attrs must be",
		"postgres://u:C4nary@h/d?sslcert=x":                    "sslcert and sslkey belong together",
		"postgres://u:C4nary@/d?host=a,b,c&port=1,2":           "3 hosts and 2 ports",
		"postgres://u@h/d?passfile=/nowhere":                   "reading the password file",
		"sqlite:":                                              "the path of the file is missing",
		"sqlite::memory:":                                      "must be a file",
		"sqlite:file:x?mode=memory":                            "must be a file",
		"sqlite:x.db?mode=ro":                                  "takes no parameters",
	} {
		_, err := database.Parse(raw, noEnv, "/")
		require.Error(t, err, raw)
		assert.Contains(t, err.Error(), want, raw)
		assert.NotContains(t, err.Error(), canary, raw)
	}
}

// The raw driver repeats the password in its error, does not verify TLS unless told, takes several hosts for one, and
// turns timeout=0 into a timeout for every call.
func TestContractDSN(t *testing.T) {
	t.Parallel()
	_, err := pgdriver.NewDriver().OpenConnector("postgres://u:C4nary%zz@h/d")
	require.ErrorContains(t, err, canary, "the raw driver hides the password now")
	raw := pgdriver.NewConnector(pgdriver.WithDSN("postgres://u@h/d")).Config()
	assert.True(t, raw.TLSConfig.InsecureSkipVerify, "the raw driver verifies by default now")
	raw = pgdriver.NewConnector(pgdriver.WithDSN("postgres://u@a,b/d")).Config()
	assert.Equal(t, "a,b:5432", raw.Addr, "the raw driver knows several hosts now")
	raw = pgdriver.NewConnector(pgdriver.WithDSN("postgres://u@h/d?sslmode=disable&target_session_attrs=any")).Config()
	assert.Contains(t, raw.ConnParams, "target_session_attrs", "the raw driver knows it now")
	db := openRaw(t, serverURL(t)+"&timeout=0")
	require.Error(t, db.PingContext(t.Context()), "the raw driver has no trouble with timeout=0 now")
}

func TestResolvePrecedence(t *testing.T) {
	t.Parallel()
	all := env("DATABASE_URL", "sqlite:/env", "PGHOST", "pghost", "PGUSER", "u")
	for _, c := range []struct {
		source database.Source
		want   string
	}{
		{database.Source{URL: "sqlite:/flag", FileURL: "sqlite:/file", Getenv: all}, "sqlite:/flag"},
		{database.Source{FileURL: "sqlite:/file", Getenv: all}, "sqlite:/env"},
		{database.Source{FileURL: "sqlite:/file", Getenv: env("PGHOST", "h")}, "sqlite:/file"},
		{database.Source{Getenv: env("PGHOST", "h", "PGUSER", "u")}, "postgres://u@h:5432/u?sslmode=verify-full"},
		{database.Source{Getenv: env("PGUSER", "u"), Dir: "/etc/x"}, "sqlite:/etc/x/cronlatch.db"},
		{database.Source{Dir: "/etc/x"}, "sqlite:/etc/x/cronlatch.db"},
	} {
		target, err := c.source.Resolve()
		require.NoError(t, err)
		assert.Equal(t, c.want, target.String())
	}
	for _, s := range []database.Source{
		{URL: "x"}, {Getenv: env("DATABASE_URL", "x")}, {FileURL: "x"}, {Getenv: env("PGHOST", "h")},
	} {
		_, err := s.Resolve()
		require.Error(t, err)
	}
	_, err := database.Resolve("", "mysql://x", nil, "")
	require.ErrorContains(t, err, "database.url: ")
}

func TestEnvironmentFillsTheURL(t *testing.T) {
	t.Parallel()
	getenv := env("PGHOST", "a,/run/pg", "PGPORT", "1,2", "PGUSER", "u", "PGPASSWORD", canary, "PGDATABASE", "d",
		"PGSSLMODE", "require", "USER", "nobody")
	target, err := database.Resolve("", "", getenv, "")
	require.NoError(t, err)
	assert.Equal(t, "postgres://u:***@a:1,%2Frun%2Fpg:2/d?sslmode=require", target.String())
	target, err = database.Parse("postgres://me@h:7/e?sslmode=disable", getenv, "")
	require.NoError(t, err)
	assert.Equal(t, "postgres://me:***@h:7/e?sslmode=disable", target.String())
	target, err = database.Parse("postgres://h", env("USER", "login"), "")
	require.NoError(t, err)
	assert.Equal(t, "postgres://login@h:5432/login?sslmode=verify-full", target.String())
}

func TestPasswordIsNeverShown(t *testing.T) {
	t.Parallel()
	target, err := database.Parse("postgres://u:C4nary@h/d", noEnv, "")
	require.NoError(t, err)
	type holder struct{ target database.Target } // fmt does not ask the methods of an unexported field
	var out strings.Builder
	for _, v := range []any{
		target, &target,
		holder{target},
		[]any{target},
		database.NewPassword(canary),
		struct{ p database.Password }{database.NewPassword(canary)},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb, v)
		}
		text, err := json.Marshal(v)
		require.NoError(t, err)
		out.Write(text)
		entry, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{}).EncodeEntry(zapcore.Entry{}, []zapcore.Field{
			zap.Any("any", v), zap.Reflect("reflect", v), zap.String("sprint", fmt.Sprint(v)),
		})
		require.NoError(t, err)
		out.WriteString(entry.String())
	}
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%d", []byte(canary))} {
		assert.NotContains(t, out.String(), form)
	}
	assert.Contains(t, out.String(), "postgres://u:***@h:5432/d")
	assert.Equal(t, canary, database.NewPassword(canary).Reveal())
	assert.Empty(t, database.NewPassword("").String())
}

func TestPassfile(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(home, ".pgpass")
	write := func(mode os.FileMode, text string) {
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
	}
	hasPassword := func(url string, getenv func(string) string) bool {
		target, err := database.Parse(url, getenv, "")
		require.NoError(t, err)
		return strings.Contains(target.String(), ":***@")
	}
	getenv := env("HOME", home)
	assert.False(t, hasPassword("postgres://u@h/d", getenv), "there is no file")
	write(0o600, "# comment\nno line\nother:*:*:*:x\nh:5432:d:u:"+canary+"\nlocalhost:*:*:*:y\n")
	assert.True(t, hasPassword("postgres://u@h/d", getenv))
	assert.False(t, hasPassword("postgres://u@h:6/d", getenv))
	assert.True(t, hasPassword("postgres://u@/d?host=/run/pg", getenv), "a socket is localhost")
	assert.True(t, hasPassword("postgres://u@h/d", env("PGPASSFILE", path)))

	write(0o644, "h:5432:d:u:"+canary+"\n")
	_, err := database.Parse("postgres://u@h/d", getenv, "")
	require.ErrorContains(t, err, "can be read by others (mode 0644)")
	assert.NotContains(t, err.Error(), canary)
	assert.True(t, hasPassword("postgres://u:p@h/d", getenv), "the file is not needed")
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"postgres://u:p@a:1,[::1]:2/d?sslmode=require&connect_timeout=5", "postgres://u:%70@%2Frun:5/d?host=x", "sqlite:x", "postgres://",
		"postgres://u:p/w@h", "postgres://u:a@b?c=1@h/d",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		target, err := database.Parse(raw, noEnv, "/")
		if err == nil && target.String() == "" {
			t.Errorf("%q: neither a target nor an error", raw)
		}
	})
}

func FuzzPasswordStaysOut(f *testing.F) {
	f.Add("/", "h/d")
	f.Add("?x=", "h/d?sslmode=x")
	f.Add("#", "h:x/d")
	f.Fuzz(func(t *testing.T, infix, rest string) {
		for _, password := range []string{canary + infix + canary, "1" + infix + canary, infix + canary} {
			target, err := database.Parse("postgres://u:"+password+"@"+rest, noEnv, "/")
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("%q, %q: %v", infix, rest, err)
			}
			if err == nil && strings.Contains(fmt.Sprintf("%#v", target), canary) && !strings.Contains(rest, canary) {
				t.Errorf("%q, %q: %v", infix, rest, target)
			}
		}
	})
}
