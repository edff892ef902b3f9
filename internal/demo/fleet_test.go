//go:build unix

package demo

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who is in a hurry leaves nothing behind either: the supervisor of a replica that had to be killed is waited for.
func TestWhoIsKilledAtTheEndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe() // the supervisor ends when nobody has the other end any more
	require.NoError(t, err)
	supervisor := exec.CommandContext(t.Context(), "cat")
	supervisor.Stdin = read
	require.NoError(t, supervisor.Start())
	require.NoError(t, read.Close())
	stubborn := exec.CommandContext(t.Context(), "/bin/sh", "-c", "trap '' INT TERM; echo ready; read line")
	stubborn.ExtraFiles = []*os.File{write}
	in, err := stubborn.StdinPipe()
	require.NoError(t, err)
	out, err := stubborn.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, stubborn.Start())
	require.NoError(t, write.Close())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)

	hurry := make(chan struct{})
	close(hurry)
	f := newFleet(&Options{Say: func(string, ...any) {}, Hurry: hurry}, t.TempDir())
	r := &replica{name: "a", child: &child{cmd: stubborn}, supervisors: []int{supervisor.Process.Pid}}
	f.replicas = []*replica{r}
	f.wg.Go(func() {
		_ = stubborn.Wait() // it was killed
		f.send(func() { r.child = nil })
		_ = supervisor.Wait() // as init does for one whose replica is dead
	})
	f.leave()
	assert.False(t, there(supervisor.Process.Pid))
	_ = in.Close() // stubborn is gone
	f.wg.Wait()
}
