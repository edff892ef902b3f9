package daemon

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/internal/supervisor"
)

// The daemon starts its supervisor as a hidden command of its own binary; here the test binary is that.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(supervisor.Main(os.Args[2:]))
		case "exec-child":
			os.Exit(supervisor.ChildMain(os.Args[2:]))
		}
	}
	goleak.VerifyTestMain(m)
}
