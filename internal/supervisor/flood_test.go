//go:build linux

package supervisor

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// floodSize is small enough for every test run; TEST_FLOOD_MB asks for more.
func floodSize(t *testing.T) int64 {
	t.Helper()
	megabytes, err := strconv.ParseInt(os.Getenv("TEST_FLOOD_MB"), 10, 64)
	if err != nil {
		megabytes = 256
	}
	return megabytes << 20
}

// Output without end and without a newline costs the supervisor nothing, and the end of it is kept.
func TestFloodOfOutput(t *testing.T) {
	t.Parallel()
	c := newClient(t, CgroupsAuto)
	size := floodSize(t)
	execute(t, c, shell(t, "head -c 1000000 /dev/zero"))
	before := highWater(t, c.PID())
	spec := shell(t, "printf first; head -c "+strconv.FormatInt(size, 10)+" /dev/zero; printf last")
	r := execute(t, c, spec)
	assert.Equal(t, size+9, r.Output.Total)
	assert.Len(t, r.Output.Head, spec.HeadBytes)
	assert.Len(t, r.Output.Tail, spec.TailBytes)
	assert.True(t, bytes.HasPrefix(r.Output.Head, []byte("first\x00\x00")))
	assert.True(t, bytes.HasSuffix(r.Output.Tail, []byte("\x00\x00last")))
	assert.Less(t, highWater(t, c.PID())-before, int64(16<<20))
}

// highWater is the most memory that the process ever had, in bytes.
func highWater(t *testing.T, pid int) int64 {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(procFile(t, pid, "status"))); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
			require.NoError(t, err)
			return kilobytes << 10
		}
	}
	require.FailNow(t, "no VmHWM")
	return 0
}

// A process outside of the tree that keeps the pipe open delays the end of the run by drainDelay.
func TestForeignHolderOfTheOutputDoesNotBlock(t *testing.T) {
	t.Parallel()
	c := newClient(t, CgroupsAuto)
	spec := shell(t, "echo hello; note main; while ! [ -e go ]; do sleep 0.01; done")
	p := start(t, c, spec)
	noted(t, spec, "main")
	holder, err := os.OpenFile("/proc/"+strconv.Itoa(p.PID())+"/fd/1", os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = holder.Close() })
	require.NoError(t, os.WriteFile(spec.Dir+"/go", nil, 0o600))
	r := wait(t, p)
	assert.Equal(t, CauseExited, r.Cause)
	assert.Equal(t, "hello\n", string(r.Output.Head))
}

// A grandchild in the tree that keeps stdout open does not block either: it is a leftover.
func TestGrandchildKeepsTheOutput(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			c := newClient(t, mode)
			r := execute(t, c, shell(t, "sleep 1000 & echo hello"))
			assert.Equal(t, Result{Cause: CauseExited, Output: Output{Head: []byte("hello\n"), Tail: r.Output.Tail, Total: 6}}, r)
		})
	}
}

func BenchmarkTrue(b *testing.B) {
	for _, mode := range []Mode{CgroupsAuto, CgroupsOff} {
		b.Run(string(mode), func(b *testing.B) {
			if err := tryCgroups(); mode == CgroupsAuto && err != nil {
				b.Skip("needs a writable cgroup v2 hierarchy: ", err)
			}
			c := newClient(b, mode)
			spec := shell(b, "")
			spec.Argv = []string{"/bin/true"}
			before := processorTime(b, c.PID())
			for b.Loop() {
				execute(b, c, spec)
			}
			b.ReportMetric((processorTime(b, c.PID())-before)/float64(b.N), "cpu-ms/op")
		})
	}
}

// processorTime is what the supervisor and its dead children have used, in milliseconds, and what we have.
func processorTime(b *testing.B, pid int) float64 {
	b.Helper()
	var own syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &own))
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	require.NoError(b, err)
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.Atoi(field)
		require.NoError(b, err)
		ticks += n
	}
	return float64(ticks)*10 + float64(own.Utime.Nano()+own.Stime.Nano())/1e6
}
