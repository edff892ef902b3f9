package supervisor

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// markName starts the entry of a run's environment that marks its processes.
const markName = "CRONLATCH_RUN_ID="

func markOf(env []string) string {
	if i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, markName) }); i >= 0 {
		return env[i]
	}
	return ""
}

// ground is where the supervisor puts its runs: cgroups below home, or process groups when home is empty.
type ground struct {
	home       string
	family     *family
	weaknesses []string
	grouped    atomic.Bool // a run without a cgroup was started: look after families
}

// newGround finds out what this machine offers. Process groups are always there, also for a single run whose cgroup
// could not be made.
func newGround(o setup) *ground {
	g := &ground{family: newFamily(os.Getpid())}
	if o.Cgroups == CgroupsOff {
		g.weaknesses = weaknesses("cgroups are switched off")
		return g
	}
	home, err := makeHome(o.Name)
	if err != nil {
		g.weaknesses = weaknesses(err.Error())
	}
	g.home = home
	return g
}

// plot is the place of one run before its process exists.
type plot struct {
	cgroup *os.File // open until after the fork; nil for a process group
	tree   tree
	dir    string
}

func (g *ground) plot(run uint64, id string) (plot, error) {
	if g.home == "" {
		return plot{}, nil
	}
	t, f, err := newCgroup(g.home, run, id)
	if err != nil {
		return plot{}, err
	}
	return plot{cgroup: f, tree: t, dir: t.dir}, nil
}

// settle makes the tree of a process that was just started.
func (g *ground) settle(p plot, pid int, env []string) (tree, started) {
	start, _ := startTime(pid)
	s := started{PID: pid, StartTime: start, Cgroup: p.dir}
	if p.tree != nil {
		return p.tree, s
	}
	g.grouped.Store(true)
	return g.family.adopt(pid, start, markOf(env)), s
}

// clear closes the plot; a tree that holds no process is removed with it.
func (p plot) clear(remove bool) {
	if p.cgroup != nil {
		_ = p.cgroup.Close()
	}
	if remove && p.tree != nil {
		_ = p.tree.remove()
	}
}
