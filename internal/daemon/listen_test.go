package daemon

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/configs"
)

// socketDir is short: the path of a socket has room for about a hundred bytes.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cl") //nolint:usetesting // t.TempDir has the test's name in it
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func listenAt(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := listenUnix(t.Context(), path)
	require.NoError(t, err)
	return l
}

// abandon leaves a socket file on which nobody listens, as a killed process does.
func abandon(t *testing.T, path string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	unix, ok := l.(*net.UnixListener)
	require.True(t, ok)
	unix.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
}

func TestASocketIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	path := filepath.Join(dir, "s")
	l := listenAt(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeSocket|0o600, info.Mode())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no lock file")
	require.NoError(t, l.Close())
	assert.NoFileExists(t, path, "it goes away with the listener")
}

func TestAStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "s")
	abandon(t, path)
	l := listenAt(t, path)
	defer func() { assert.NoError(t, l.Close()) }()
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func TestALiveSocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "s")
	l := listenAt(t, path)
	_, err := listenUnix(t.Context(), path)
	require.ErrorIs(t, err, errSocketServed)
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	require.NoError(t, err, "it still works")
	require.NoError(t, conn.Close())
	require.NoError(t, l.Close())
}

func TestWhatIsNoSocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	file, link := filepath.Join(dir, "f"), filepath.Join(dir, "l")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(file, link))
	for _, path := range []string{file, link, dir} {
		_, err := listenUnix(t.Context(), path)
		require.ErrorIs(t, err, errNotSocket, path)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))

	_, err = listenUnix(t.Context(), filepath.Join(dir, "no", "s"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = listenUnix(t.Context(), filepath.Join(dir, strings.Repeat("s", 200)))
	require.ErrorContains(t, err, "that of a socket has ")
}

// Two daemons that find the same stale socket: without the lock one would remove the other's new one.
func TestOneTakesTheStaleSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "s")
	for range 10 {
		abandon(t, path)
		got, errs := make([]net.Listener, 4), make([]error, 4)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i], errs[i] = listenUnix(t.Context(), path) })
		}
		wg.Wait()
		served := 0
		for _, err := range errs {
			if err == nil {
				served++
				continue
			}
			require.ErrorIs(t, err, errSocketServed)
		}
		assert.Equal(t, 1, served)
		for _, l := range got {
			if l != nil {
				require.NoError(t, l.Close())
			}
		}
	}
}

func TestAWaitForTheFolderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	unlock, err := lockDir(t.Context(), dir)
	require.NoError(t, err)
	defer unlock()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = listenUnix(ended, filepath.Join(dir, "s"))
	require.ErrorIs(t, err, context.Canceled)
}

func TestListen(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	wants := map[string]string{
		"unix:s": "unix:" + filepath.Join(dir, "s"), "unix:" + filepath.Join(dir, "t"): "unix:" + filepath.Join(dir, "t"),
		"127.0.0.1:0": "http://127.0.0.1:", "localhost:0": "http://",
	}
	if probe, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "[::1]:0"); err == nil { // not every machine has IPv6
		require.NoError(t, probe.Close())
		wants["[::1]:0"] = "http://[::1]:"
	}
	for given, want := range wants {
		l, err := listen(t.Context(), &configs.Config{Dir: dir, Listen: given}, zap.NewNop())
		require.NoError(t, err, given)
		assert.True(t, strings.HasPrefix(l.url, want), "%s: %s", given, l.url)
		require.NoError(t, l.Close())
	}
	_, err := listen(t.Context(), &configs.Config{Dir: dir, Listen: "unix:no/s"}, zap.NewNop())
	require.ErrorContains(t, err, "listening on "+filepath.Join(dir, "no", "s"))
	_, err = listen(t.Context(), &configs.Config{Dir: dir, Listen: "127.0.0.1:0", TLS: configs.TLS{Cert: "no.crt", Key: "no.key"}}, zap.NewNop())
	require.ErrorContains(t, err, filepath.Join(dir, "no.crt"))
}
