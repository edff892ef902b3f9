package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// programEnv makes the test binary withpg itself.
const programEnv = "CRONLATCH_TEST_WITHPG"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// withpg prepares a run of the program with a temporary folder of its own.
func withpg(t *testing.T, args ...string) (cmd *exec.Cmd, temp string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	temp, err = os.MkdirTemp("", "withpg-") //nolint:usetesting // t.TempDir is too deep for a unix socket, and closed to others
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(temp)) })
	require.NoError(t, os.Chmod(temp, 0o777))
	cmd = exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), programEnv+"=1", "TMPDIR="+temp)
	return cmd, temp
}

func exit(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	var e *exec.ExitError
	require.ErrorAs(t, err, &e)
	return e.ExitCode()
}

func empty(t *testing.T, temp string) {
	t.Helper()
	entries, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, entries, "nothing may be left")
}

func TestRunsACommandBesideAServer(t *testing.T) {
	t.Parallel()
	cmd, temp := withpg(t, "--", "sh", "-c", `echo "$CRONLATCH_TEST_POSTGRES"; [ -d "$CRONLATCH_TEST_PGTEMPLATE" ]; exit 3`)
	out, err := cmd.Output()
	assert.Equal(t, 3, exit(t, err))
	assert.Regexp(t, `^postgres://postgres@127\.0\.0\.1:\d+/postgres\?sslmode=disable\n$`, string(out))
	empty(t, temp)
}

func TestRunsACommandBehindABouncer(t *testing.T) {
	t.Parallel()
	cmd, temp := withpg(t, "-bouncer", "--", "sh", "-c", `echo "$CRONLATCH_TEST_POSTGRES $CRONLATCH_TEST_POSTGRES_DIRECT"; exit 4`)
	out, err := cmd.Output()
	assert.Equal(t, 4, exit(t, err))
	const url = `postgres://postgres@127\.0\.0\.1:(\d+)/postgres\?sslmode=disable`
	found := regexp.MustCompile(`^` + url + ` ` + url + `\n$`).FindStringSubmatch(string(out))
	require.Len(t, found, 3, string(out))
	assert.NotEqual(t, found[1], found[2], "two ports")
	empty(t, temp)
}

// The defaults of the server are what an installation may have.
func TestSettings(t *testing.T) {
	t.Parallel()
	cmd, temp := withpg(t, "-timezone", "Asia/Kathmandu", "-datestyle", "SQL, DMY", "-isolation", "serializable", "--", "sh", "-c",
		`grep -E 'timezone|datestyle|isolation' "$(dirname "$CRONLATCH_TEST_PGTEMPLATE")/data/postgresql.conf"`)
	out, err := cmd.Output()
	require.NoError(t, err)
	for _, line := range []string{"timezone = 'Asia/Kathmandu'", "datestyle = 'SQL, DMY'", "default_transaction_isolation = 'serializable'"} {
		assert.Contains(t, string(out), line+"\n")
	}
	empty(t, temp)
}

func TestRunsAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	cmd, temp := withpg(t, "--", "true")
	if os.Geteuid() == 0 {
		nobody, err := user.Lookup("nobody")
		require.NoError(t, err)
		uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
		require.NoError(t, err)
		gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
		require.NoError(t, err)
		copied := filepath.Join(temp, "withpg")
		program, err := os.ReadFile(cmd.Path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(copied, program, 0o755))
		cmd.Path, cmd.Dir = copied, temp
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		defer func() { require.NoError(t, os.Remove(copied)) }()
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	leftovers, err := filepath.Glob(filepath.Join(temp, "cronlatch-*"))
	require.NoError(t, err)
	assert.Empty(t, leftovers)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{}, 64, "withpg: no command given; try: withpg -- go test ./internal/database\n"},
		{[]string{"-nonsense"}, 64, "flag provided but not defined: -nonsense"},
		{[]string{"--", "/nonexistent/program"}, 127, "withpg: starting /nonexistent/program: "},
		{[]string{"--", "sh", "-c", "kill -9 $$"}, 128 + 9, ""},
		{[]string{"-find"}, 0, ""},
		{[]string{"-find", "-bouncer"}, 0, ""},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			cmd, temp := withpg(t, test.args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			assert.Equal(t, test.code, exit(t, cmd.Run()))
			assert.Contains(t, stderr.String(), test.stderr)
			empty(t, temp)
		})
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"terminated": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, temp := withpg(t, "--", "sh", "-c", `trap 'exit 7' TERM; echo ready; read line; exit 9`)
			stdin, err := cmd.StdinPipe()
			require.NoError(t, err)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "ready\n", line)
			require.NoError(t, cmd.Process.Signal(sig))
			err = cmd.Wait()
			if sig == syscall.SIGTERM {
				assert.Equal(t, 7, exit(t, err), "the command gets the signal and decides")
			}
			require.Eventually(t, func() bool {
				entries, err := os.ReadDir(temp)
				return err == nil && len(entries) == 0
			}, 30*time.Second, 20*time.Millisecond, "nothing may be left")
			// Wait has closed the pipe; the command of a killed withpg then ends by itself.
			_, err = io.WriteString(stdin, "\n")
			assert.True(t, err == nil || errors.Is(err, os.ErrClosed))
		})
	}
}
