//go:build unix

package demo

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answering is a folder with the state of a demo that answers, as the demo itself leaves it.
func answering(t *testing.T) (dir, path string) {
	t.Helper()
	home, err := os.MkdirTemp("", "demo-") //nolint:usetesting // the name of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	dir = filepath.Join(home, "state")
	socket := filepath.Join(home, socketName)
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answer(conn, func(q question) Killed { return Killed{Replica: q.Kill} })
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	require.NoError(t, writeState(dir, state{os.Getpid(), dir, socket}))
	return dir, filepath.Join(dir, stateName)
}

func TestKillAsksTheDemoOfItsFolder(t *testing.T) {
	t.Parallel()
	dir, _ := answering(t)
	k, err := Kill(t.Context(), dir, "b")
	require.NoError(t, err)
	assert.Equal(t, "b", k.Replica)
}

// What somebody else could have written decides nothing: neither a folder, a file nor a link of theirs is believed, although a
// demo answers behind it.
func TestKillRefusesWhatOthersCouldHaveWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir, path string)
		want  string
	}{
		"others may write the folder": {
			func(t *testing.T, dir, _ string) { t.Helper(); require.NoError(t, os.Chmod(dir, 0o770)) }, //nolint:gosec // what is refused
			"others can write to ",
		},
		"others may write the file": {
			func(t *testing.T, _, path string) { t.Helper(); require.NoError(t, os.Chmod(path, 0o606)) }, //nolint:gosec // what is refused
			"others can write to ",
		},
		"the file is a link": {
			func(t *testing.T, dir, path string) {
				t.Helper()
				elsewhere := filepath.Join(filepath.Dir(dir), "elsewhere")
				require.NoError(t, os.Rename(path, elsewhere))
				require.NoError(t, os.Symlink(elsewhere, path))
			}, "is a link",
		},
		"the folder is a link": {
			func(t *testing.T, dir, _ string) {
				t.Helper()
				require.NoError(t, os.Rename(dir, dir+"-real"))
				require.NoError(t, os.Symlink(dir+"-real", dir))
			}, "is a link",
		},
		"the folder is another user's": {
			func(t *testing.T, dir, _ string) {
				t.Helper()
				if os.Geteuid() != 0 {
					t.Skip("only root can give a folder away")
				}
				require.NoError(t, os.Chown(dir, 12345, 12345))
			}, "belongs to another user",
		},
		"the file is another user's": {
			func(t *testing.T, _, path string) {
				t.Helper()
				if os.Geteuid() != 0 {
					t.Skip("only root can give a file away")
				}
				require.NoError(t, os.Chown(path, 12345, 12345))
			}, "belongs to another user",
		},
		"it is something else": {
			func(t *testing.T, _, path string) {
				t.Helper()
				require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
			},
			"is not the state of a demo",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, path := answering(t)
			c.spoil(t, dir, path)
			_, err := Kill(t.Context(), dir, "b")
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, ErrNone)
		})
	}
}

// Nothing is written where somebody else could write, and nothing of another demo is removed.
func TestStateIsWrittenOnlyWherePrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // what is refused
	require.ErrorContains(t, writeState(dir, state{1, dir, "socket"}), "others can write to ")
	require.NoFileExists(t, filepath.Join(dir, stateName))

	require.NoError(t, os.Chmod(dir, 0o700)) //nolint:gosec // a folder
	mine, other := state{1, dir, "mine"}, state{2, dir, "other"}
	require.NoError(t, writeState(dir, mine))
	require.NoError(t, writeState(dir, other))
	require.NoError(t, removeState(dir, mine))
	text, err := os.ReadFile(filepath.Join(dir, stateName))
	require.NoError(t, err)
	var there state
	require.NoError(t, json.Unmarshal(text, &there))
	assert.Equal(t, other, there, "the last demo's state stays when an earlier one ends")
}

func TestADemoBeginsInAnEmptyFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	_, err := emptyDir(dir)
	require.ErrorContains(t, err, "is not empty")
	open := t.TempDir()
	require.NoError(t, os.Chmod(open, 0o777)) //nolint:gosec // what is refused
	_, err = emptyDir(open)
	require.ErrorContains(t, err, "others can write to ")
}
