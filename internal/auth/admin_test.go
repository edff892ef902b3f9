package auth

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

func ensure(t *testing.T, s *Store, path string) AdminToken {
	t.Helper()
	got, err := EnsureAdmin(t.Context(), s, path, "a")
	require.NoError(t, err)
	return got
}

// logsIn checks the token in the file as a server would.
func logsIn(t *testing.T, s *Store, path string) {
	t.Helper()
	token, err := ReadFile(path)
	require.NoError(t, err)
	p, err := NewTokens(nil, s).Authenticate(t.Context(), token)
	require.NoError(t, err)
	assert.Equal(t, Principal{ID: AdminID, Role: Admin}, p)
}

func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no draft is left behind")
	assert.Equal(t, filepath.Base(path), entries[0].Name())
}

func TestTheFirstStartMakesAnAdmin(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		s, path := openStore(t, db), filepath.Join(t.TempDir(), "cronlatch.token")
		first := ensure(t, s, path)
		assert.Equal(t, AdminCreated, first.State)
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o600), info.Mode())
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, first.Token+"\n", string(text))
		onlyFile(t, path)
		logsIn(t, s, path)
		for _, e := range load(t, s).Entries {
			assert.NotContains(t, e.Hash, first.Token)
		}

		assert.Equal(t, AdminToken{State: AdminHere}, ensure(t, s, path), "shown once")
		logsIn(t, s, path)
		assert.Equal(t, []auditRow{{"token.create", "replica", "a", "success", "admin"}}, auditRows(t, db))
	})
}

// A replica that is second on another host keeps no file with a token that opens nothing.
func TestTheFirstReplicaWins(t *testing.T) {
	t.Parallel()
	s := openStore(t, dbtest.SQLite(t))
	here, there := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "token")
	require.Equal(t, AdminCreated, ensure(t, s, here).State)
	assert.Equal(t, AdminToken{State: AdminElsewhere}, ensure(t, s, there))
	assert.NoFileExists(t, there)

	old := mustNew(t, AdminID)
	require.NoError(t, createFile(there, old))
	assert.Equal(t, AdminToken{State: AdminElsewhere}, ensure(t, s, there))
	kept, err := ReadFile(there)
	require.NoError(t, err)
	assert.Equal(t, old, kept, "a file that we did not make is not ours to remove")
}

// Replicas on several hosts that start at the same moment: one token, one file with it, and nothing else.
func TestManyFirstStarts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		t.Helper()
		s, dirs := openStore(t, db), []string{t.TempDir(), t.TempDir(), t.TempDir()}
		got := make([]AdminToken, 2*len(dirs))
		errs := make([]error, len(got))
		var wg sync.WaitGroup
		for i := range got { // two on each host
			wg.Go(func() { got[i], errs[i] = EnsureAdmin(t.Context(), s, filepath.Join(dirs[i%len(dirs)], "token"), "a") })
		}
		wg.Wait()
		created, files := 0, 0
		for i := range got {
			require.NoError(t, errs[i])
			if got[i].State == AdminCreated {
				created++
				assert.Equal(t, Hash(got[i].Token), load(t, s).Entries[0].Hash)
			}
		}
		for _, dir := range dirs {
			if path := filepath.Join(dir, "token"); fileExists(path) {
				files++
				logsIn(t, s, path)
			}
		}
		assert.Equal(t, 1, created, "shown once")
		assert.Equal(t, 1, files)
		assert.Len(t, load(t, s).Entries, 1)
	})
}

// Two replicas of one host found no row. The other one made the file, lost against another host and took the file away
// between our finding it and our reading it, as a link that leads nowhere is there and cannot be read.
func TestTheFileOfALoserGoesWhileItIsRead(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t, dbtest.SQLite(t)), t.TempDir()
	gone := filepath.Join(dir, "gone")
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), gone))
	_, err := makeAdmin(t.Context(), s, gone, "a")
	require.ErrorIs(t, err, ErrFile, "nobody has made a token: somebody else took the file")
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.Equal(t, AdminCreated, ensure(t, s, filepath.Join(dir, "token")).State)
	got, err := makeAdmin(t.Context(), s, gone, "a")
	require.NoError(t, err)
	assert.Equal(t, AdminToken{State: AdminElsewhere}, got)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The file is there and the row is not: the first start died in between, or somebody gives all replicas the same file.
func TestAFileWithoutARowIsUsed(t *testing.T) {
	t.Parallel()
	s, path := openStore(t, dbtest.SQLite(t)), filepath.Join(t.TempDir(), "token")
	token := mustNew(t, AdminID)
	require.NoError(t, createFile(path, token))
	assert.Equal(t, AdminToken{State: AdminHere}, ensure(t, s, path))
	logsIn(t, s, path)

	require.NoError(t, os.Chmod(path, 0o640))
	assert.Equal(t, AdminToken{State: AdminHere, Loose: true}, ensure(t, s, path))
}

// Who revoked the admin token does not want the next restart to make another one.
func TestARevokedAdminIsNotReplaced(t *testing.T) {
	t.Parallel()
	s, path := openStore(t, dbtest.SQLite(t)), filepath.Join(t.TempDir(), "token")
	ensure(t, s, path)
	require.NoError(t, s.Revoke(t.Context(), AdminID, "me"))
	for range 2 {
		assert.Equal(t, AdminToken{State: AdminRevoked}, ensure(t, s, path))
		require.NoError(t, os.RemoveAll(path))
	}
	assert.NoFileExists(t, path)
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t, dbtest.SQLite(t)), t.TempDir()
	for name, text := range map[string]string{
		"empty": "", "text": "hello", "other": mustNew(t, "ci"), "long": mustNew(t, AdminID) + string(make([]byte, maxFile)),
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := EnsureAdmin(t.Context(), s, path, "a")
		require.ErrorIs(t, err, ErrFile, name)
		require.ErrorContains(t, err, path)
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, string(kept), "what is there is not overwritten")
	}
	for _, path := range []string{filepath.Join(dir, "no", "folder"), dir} {
		_, err := EnsureAdmin(t.Context(), s, path, "a")
		require.ErrorIs(t, err, ErrFile, path)
	}
	assert.Empty(t, load(t, s).Entries, "no row without a file")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 4, "no draft is left behind")
}

// An error of the database is not one of the file: the daemon waits for the database.
func TestWithoutADatabase(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	s, path := openStore(t, db), filepath.Join(t.TempDir(), "token")
	_, err := db.Main.NewRaw("DROP TABLE api_tokens").Exec(t.Context())
	require.NoError(t, err)
	_, err = EnsureAdmin(t.Context(), s, path, "a")
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrFile)
	assert.NoFileExists(t, path)
}

// Readers see the whole token or no file at all.
func TestTheFileAppearsWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	var wg sync.WaitGroup
	stop := make(chan struct{})
	defer wg.Wait()
	defer close(stop)
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := ReadFile(path); err != nil {
					assert.ErrorIs(t, err, fs.ErrNotExist)
				}
			}
		}
	})
	for range 50 {
		token := mustNew(t, "a")
		require.NoError(t, createFile(path, token))
		require.ErrorIs(t, createFile(path, token), fs.ErrExist)
		require.NoError(t, removeFile(path, mustNew(t, "a")))
		assert.FileExists(t, path, "it holds another token")
		require.NoError(t, removeFile(path, token))
		assert.NoFileExists(t, path)
	}
}
