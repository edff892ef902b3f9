package pgserver

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/driver/pgdriver"
)

const (
	patience = 30 * time.Second
	look     = 20 * time.Millisecond
)

// query asks a server on a connection of its own.
func query(t *testing.T, s *Server, text string) (answer string, err error) {
	t.Helper()
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(s.URL())))
	defer func() { assert.NoError(t, db.Close()) }()
	err = db.QueryRowContext(t.Context(), text).Scan(&answer)
	return answer, err
}

func ask(t *testing.T, s *Server, text string) string {
	t.Helper()
	answer, err := query(t, s, text)
	require.NoError(t, err)
	return answer
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, patience, look, "process %d must end", pid)
	}
}

func folderGone(t *testing.T, dir string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	}, patience, look)
}

func TestSettingsOfATestServer(t *testing.T) {
	t.Parallel()
	s := Start(t, Setting("application_name", "it's"), Fsync())
	for name, want := range map[string]string{
		"application_name": "it's", "fsync": "on", "full_page_writes": "on", "max_connections": "300",
		"listen_addresses": "127.0.0.1", "server_encoding": "UTF8", "TimeZone": "UTC",
	} {
		assert.Equal(t, want, ask(t, s, `SELECT current_setting('`+name+`')`), name)
	}
	assert.Equal(t, "true", ask(t, s, `SELECT rolsuper FROM pg_roles WHERE rolname = current_user`))
	_, err := query(t, s, `SELECT 1/0`)
	require.Error(t, err)
	assert.Regexp(t, `(?m)^\S+ \S+ UTC \[\d+\] 22012 ERROR:  division by zero\n.*22012 STATEMENT:  SELECT 1/0$`, s.Log())
	_, err = os.Stat(filepath.Join(s.SocketDir(), ".s.PGSQL."+strings.TrimPrefix(s.Addr(), "127.0.0.1:")))
	require.NoError(t, err, "the unix socket")
}

func TestStopKillAndRestartKeepPortAndData(t *testing.T) {
	t.Parallel()
	s := Start(t)
	require.Equal(t, "1", ask(t, s, `CREATE TABLE kept AS SELECT 1 AS n; SELECT n FROM kept`))
	url := s.URL()
	for name, down := range map[string]func(){
		"smart":     func() { s.Stop(Smart) },
		"fast":      func() { s.Stop(Fast) },
		"immediate": func() { s.Stop(Immediate) },
		"kill":      s.Kill,
		"none":      func() {},
	} {
		pid := s.process.cmd.Process.Pid
		family := append(children(t.Context(), pid), pid)
		require.Greater(t, len(family), 3, "the server's own processes")
		down()
		if name != "none" {
			gone(t, family...)
			_, err := query(t, s, `SELECT 1`)
			require.ErrorIs(t, err, syscall.ECONNREFUSED, name)
		}
		down() // a second time does nothing
		s.Restart()
		require.NotEqual(t, pid, s.process.cmd.Process.Pid, name)
		require.Equal(t, "1", ask(t, s, `SELECT n FROM kept`), name)
	}
	assert.Equal(t, url, s.URL())
}

func TestTheEndOfTheTestRemovesTheServer(t *testing.T) {
	t.Parallel()
	var up, killed *Server
	var pid int
	t.Run("inner", func(t *testing.T) {
		up, killed = Start(t), Start(t)
		pid = up.process.cmd.Process.Pid
		killed.Kill()
	})
	assert.False(t, alive(pid))
	assert.NoDirExists(t, up.folder.root)
	assert.NoDirExists(t, killed.folder.root)
}

func TestKilledStarterLeavesNothing(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	cmd.Stderr = os.Stderr
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	var dir string
	var pid int
	_, err = fmt.Sscan(line, &dir, &pid)
	require.NoError(t, err)
	family := append(children(t.Context(), pid), pid)
	require.DirExists(t, dir)
	require.Greater(t, len(family), 3)

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	gone(t, family...)
	folderGone(t, dir)
}

// A left-over postmaster.pid may name a process that has nothing to do with the server.
func TestWatchdogSparesAStranger(t *testing.T) {
	t.Parallel()
	stranger := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read line")
	stdin, err := stranger.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, stranger.Start())
	dir := filepath.Join(t.TempDir(), "server")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700))
	pidFile := filepath.Join(dir, "data", "postmaster.pid")
	require.NoError(t, os.WriteFile(pidFile, fmt.Appendln(nil, stranger.Process.Pid), 0o600))

	w, err := startWatchdog(t.Context(), dir, pidFile)
	require.NoError(t, err)
	require.NoError(t, w.release())
	assert.NoDirExists(t, dir)
	_, err = fmt.Fprintln(stdin)
	require.NoError(t, err)
	require.NoError(t, stranger.Wait(), "it was not signaled")
}
