package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindPlaces(t *testing.T) {
	t.Parallel()
	const (
		hybrid  = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
		unified = "26 23 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		partial = "26 23 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		blank   = `26 23 0:22 / /mnt/c\040g rw - cgroup2 cgroup2 rw` + "\n"
	)
	for name, c := range map[string]struct {
		mounts, own string
		want        []string
	}{
		"hybrid":               {hybrid, "8:pids:/\n0::/\n", []string{"/sys/fs/cgroup/unified"}},
		"service":              {unified, "0::/system.slice/cronlatch.service\n", []string{"/sys/fs/cgroup/system.slice/cronlatch.service", "/sys/fs/cgroup"}},
		"container, own space": {unified, "0::/\n", []string{"/sys/fs/cgroup"}},
		"container, partial":   {partial, "0::/docker/abc/inner\n", []string{"/sys/fs/cgroup/inner", "/sys/fs/cgroup"}},
		"outside of the mount": {partial, "0::/elsewhere\n", []string{"/sys/fs/cgroup"}},
		"above the name space": {unified, "0::/../other\n", []string{"/sys/fs/cgroup/other", "/sys/fs/cgroup"}},
		"blank in the path":    {blank, "0::/a\n", []string{"/mnt/c g/a", "/mnt/c g"}},
	} {
		got, err := findPlaces(c.mounts, c.own)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
	_, err := findPlaces("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "0::/\n")
	require.ErrorIs(t, err, errNoCgroups)
	_, err = findPlaces(unified, "8:pids:/\n")
	require.ErrorIs(t, err, errNoCgroups)
}

// Only the certainly dead are cleaned up after.
func TestDeserted(t *testing.T) {
	t.Parallel()
	self := mustRead(t, os.Getpid())
	assert.False(t, deserted(homeName("me")), "alive")
	assert.True(t, deserted(fmt.Sprintf("x.%s.%d.%d", pidNamespace(), self.pid, self.start+1)), "another process with this PID")
	assert.True(t, deserted(fmt.Sprintf("x.%s.%d.1", pidNamespace(), highestPID())), "no such process")
	assert.False(t, deserted(fmt.Sprintf("x.%s.%d.1", "4711", highestPID())), "another PID namespace")
	for _, foreign := range []string{"", "x", "a.b.c.d", "x." + pidNamespace() + ".1", "x." + pidNamespace() + ".1.2.3", "x." + pidNamespace() + ".one.2"} {
		assert.False(t, deserted(foreign), foreign)
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "report_monthly-2026_ber", fileName("report:monthly-2026/ber"))
	assert.Equal(t, "___", fileName("../"))
	assert.Len(t, fileName(string(make([]byte, 300))), 100)
}

func TestCgroupRemoveTakesNestedOnes(t *testing.T) {
	t.Parallel()
	needCgroups(t)
	home, err := makeHome("nested")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(home, "a", "b"), 0o755))
	removeHome(home)
	assert.NoDirExists(t, home)
}

func TestBornBetween(t *testing.T) {
	t.Parallel()
	assert.Empty(t, bornBetween(7, 7))
	assert.Equal(t, []int{8, 9}, bornBetween(7, 9))
	wrapped := bornBetween(highestPID()-1, 2)
	assert.Equal(t, []int{highestPID(), 1, 2}, wrapped)
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	p, err := parseStat([]byte("42 (a) Z 1) b) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 484349 2592 10\n"))
	require.NoError(t, err)
	assert.Equal(t, process{ppid: 7, pgid: 8, sid: 9, start: 484349}, p)
	p, err = parseStat([]byte("42 (x) Z 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 484349 0 0\n"))
	require.NoError(t, err)
	assert.True(t, p.zombie)
	_, err = parseStat([]byte("42 (x) S 1 2"))
	require.ErrorIs(t, err, errStat)
}

func BenchmarkCensus(b *testing.B) {
	self := os.Getpid()
	for b.Loop() {
		b.ReportMetric(float64(len(takeCensus(self).byPID)), "processes")
	}
}
