package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/migrations"
)

// examined are the findings about the database at url, as lines.
func examined(t *testing.T, url string) (lines string, unreachable bool) {
	t.Helper()
	target, err := database.Parse(url, func(string) string { return "" }, t.TempDir())
	require.NoError(t, err)
	p := &Patient{Configuration: Configuration{Missing: true}, Target: target, Patience: time.Minute, Supervisor: func() ([]string, error) { return nil, nil }}
	r := Examine(t.Context(), p)
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %s -> %s\n", f.Level, f.Check, f.Found, f.Remedy)
	}
	return b.String(), r.Unreachable
}

// contents are the files of a folder, byte for byte.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}))
	return all
}

// What cannot be used is named for what it is, and what is there stays as it is, whoever it belongs to.
func TestTheFileIsLookedAtAndLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("empty.db", "")
	write("short.db", "SQLite")
	write("text.db", "this is a letter and not a database at all")
	write("other.db", "SQLite format 3\x00\x10\x00\x01\x01"+strings.Repeat("\x00", 4096))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.db"), 0o700))
	before := contents(t, dir)
	for name, c := range map[string]struct {
		want        string
		unreachable bool
	}{
		"new.db":       {"ok database: SQLite makes what it needs", false},
		"empty.db":     {"ok database: SQLite makes what it needs", false},
		"other.db":     {"warn database: ", false},
		"short.db":     {"fail file: ", true},
		"text.db":      {"is not a database of SQLite -> name another file", true},
		"folder.db":    {"folder.db is a folder -> name a file in it", true},
		"none/such.db": {"none is not there -> make the folder", true},
	} {
		lines, unreachable := examined(t, "sqlite:"+filepath.Join(dir, name))
		assert.Contains(t, lines, c.want, name)
		assert.Equal(t, c.unreachable, unreachable, "%s: %s", name, lines)
		assert.NotContains(t, lines, "is it running", name)
		assert.NotContains(t, lines, "chmod 600 "+filepath.Join(dir, "folder.db"), "nobody could enter it then")
	}
	assert.Equal(t, before, contents(t, dir))
}

// A damaged file is no outage that passes.
func TestADamagedFile(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	path := strings.TrimPrefix(url, "sqlite:")
	db := dbtest.Open(t, url)
	require.NoError(t, migrations.Up(t.Context(), db.Main))
	require.NoError(t, db.Close())
	require.NoError(t, os.Truncate(path, 20_000))
	lines, unreachable := examined(t, url)
	assert.True(t, unreachable)
	assert.Contains(t, lines, "restore a backup")
	assert.NotContains(t, lines, "is it running")
}

func TestAFileOfSomebodyElse(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		assert.NoError(t, writable(t.TempDir()), "root may do everything")
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	require.NoError(t, os.WriteFile(path, nil, 0o400))
	lines, _ := examined(t, "sqlite:"+path)
	assert.Contains(t, lines, "this user may not read and write "+path)
}

// Each table of the schema is one that the role is asked about.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	ctx := context.Background()
	exec := func(query string, args ...any) {
		t.Helper()
		_, err := db.Main.NewRaw(query, args...).Exec(ctx)
		require.NoError(t, err)
	}
	var ours []string
	require.NoError(t, db.Main.NewRaw(`SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace
		AND relname NOT IN ('schema_migrations', 'audit_log')`).Scan(ctx, &ours))
	for _, name := range ours {
		assert.Contains(t, tables, `"`+name+`"`, "a role that may not use it would be called good")
	}
	const role = `"doctor-privileges"`
	exec(`DROP ROLE IF EXISTS ` + role)
	exec(`CREATE ROLE ` + role)
	t.Cleanup(func() { exec(`RESET ROLE; DROP OWNED BY ` + role + `; DROP ROLE ` + role) })
	var schema string
	require.NoError(t, db.Main.NewRaw(`SELECT quote_ident(current_schema())`).Scan(ctx, &schema))
	exec(`GRANT USAGE ON SCHEMA ` + schema + ` TO ` + role)
	lacking := func() []string {
		t.Helper()
		tx, err := db.Main.BeginTx(ctx, nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		_, err = tx.NewRaw(`SET LOCAL ROLE ` + role).Exec(ctx)
		require.NoError(t, err)
		missing, err := lackingPostgres(ctx, tx)
		require.NoError(t, err)
		facts, err := askPostgres(ctx, tx)
		require.NoError(t, err)
		assert.Equal(t, role, facts.Role, "as it is typed into GRANT")
		return missing
	}
	assert.Len(t, lacking(), 4*len(ours)+len([]string{"SELECT", "INSERT"})+len([]string{"schema_migrations", "fencing_tokens"}))
	exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ` + schema + ` TO ` + role)
	assert.Equal(t, []string{"USAGE on fencing_tokens"}, lacking(), "without it there is no lock")
	exec(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA ` + schema + ` TO ` + role)
	exec(`REVOKE UPDATE, DELETE ON audit_log FROM ` + role)
	assert.Empty(t, lacking())
}
