package pgserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperEnv makes the test binary the process that starts a server and is then killed by a test.
const helperEnv = "CRONLATCH_TEST_PGSERVER_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		if err := helper(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// helper starts a server, prints its folder and its process number, and waits for the end of its standard input.
func helper() error {
	return Run(context.Background(), func(s *Server) error {
		fmt.Println(s.folder.root, s.process.cmd.Process.Pid)
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	})
}
