package migrations_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/migrations"
)

// The test binary is also the program that the tests start as other replicas: with helperEnv it migrates.
const (
	helperEnv = "CRONLATCH_TEST_MIGRATE"
	stopEnv   = "CRONLATCH_TEST_STOP_AFTER"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(helperEnv); url != "" {
		if err := helper(url, os.Getenv(stopEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// helper says "ready", waits for a line, and migrates. With stopAfter it says "stopped" inside the transaction, after
// that migration, and never goes on.
func helper(url, stopAfter string) error {
	db, err := openURL(url)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the process ends here
	s, err := migrations.SchemaOf(db.Main)
	if err != nil {
		return err
	}
	if stopAfter != "" {
		addSecond(s)
		s.OnApplied(func(name string) {
			if name == stopAfter {
				fmt.Println("stopped")
				_, _ = io.Copy(io.Discard, os.Stdin) // until the parent kills this process
			}
		})
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	return s.Up(context.Background(), db.Main)
}

func openURL(url string) (*database.DB, error) {
	target, err := database.Parse(url, func(string) string { return "" }, ".")
	if err != nil {
		return nil, err
	}
	return database.Open(target, database.Options{})
}

// replica is a running helper.
type replica struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
}

func startReplica(t *testing.T, url, stopAfter string) *replica {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	r := &replica{cmd: exec.CommandContext(t.Context(), self)}
	r.cmd.Env = append(os.Environ(), helperEnv+"="+url, stopEnv+"="+stopAfter)
	r.cmd.Stderr = os.Stderr
	r.stdin, err = r.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	r.lines = bufio.NewReader(stdout)
	require.NoError(t, r.cmd.Start())
	r.expect(t, "ready")
	return r
}

func (r *replica) expect(t *testing.T, word string) {
	t.Helper()
	line, err := r.lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, word+"\n", line)
}

func (r *replica) migrate(t *testing.T) {
	t.Helper()
	_, err := fmt.Fprintln(r.stdin)
	require.NoError(t, err)
}
