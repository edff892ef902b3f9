package daemon

import (
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/scheduler"
)

// Trigger says who wants a reload.
type Trigger struct {
	kind audit.ActorType
	id   string
	mild bool // nobody waits for an answer: what is no news is not said
}

// The triggers that are no person's.
var (
	BySignal = Trigger{kind: audit.ActorSystem, id: "signal"}           //nolint:gochecknoglobals // a constant
	byFile   = Trigger{kind: audit.ActorSystem, id: "file", mild: true} //nolint:gochecknoglobals // a constant
)

// Reloaded is what a reload changed: names of jobs, sorted.
type Reloaded struct {
	Added   []string
	Removed []string
	Changed []string
	Jobs    int    // how many there are now
	Hash    string // of the definitions
}

// Nothing reports whether no job is another one.
func (r *Reloaded) Nothing() bool { return len(r.Added)+len(r.Removed)+len(r.Changed) == 0 }

// RestartError refuses a configuration whose keys a running daemon cannot follow. Nothing was changed.
type RestartError struct {
	Keys []string // sorted: "listen", "lock.ttl"
}

func (e *RestartError) Error() string {
	return "only a restart can change " + strings.Join(e.Keys, ", ")
}

// The reasons why there is no reload at all.
var (
	ErrNoReload = errors.New("daemon: the configuration of this daemon cannot be read again")
	ErrLeaving  = errors.New("daemon: this replica is leaving")
)

// Reload reads the configuration again and replaces the jobs, all or none. It waits neither for running jobs nor for the
// database, and may be called at any time; a daemon that is still starting begins with the new jobs. The error is
// *configs.Errors when the content is at fault, *RestartError when other keys than those of jobs differ, ErrNoReload,
// ErrLeaving, or that of reading the file. After any error the jobs are as they were.
func (d *Daemon) Reload(by Trigger) (Reloaded, error) {
	if d.o.Reload == nil {
		return Reloaded{}, ErrNoReload
	}
	d.reloading.Lock() // for all of it: what was read last is what stays
	defer d.reloading.Unlock()
	if d.state.Load() == stateDraining {
		return Reloaded{}, ErrLeaving
	}
	next, err := d.o.Reload()
	d.follows(next, err)
	if err == nil {
		if keys := needRestart(d.config, next); len(keys) > 0 {
			err = &RestartError{keys}
		}
	}
	if err != nil {
		d.observe(false)
		d.rejected(by, err)
		return Reloaded{}, err
	}
	r := compare(d.config, next)
	d.config = next
	d.observe(true)
	if d.sched != nil && !r.Nothing() {
		d.sched.Reload(next.Jobs, next.Hash)
	}
	d.accepted(by, &r)
	d.complaint = ""
	return r, nil
}

// attach makes the scheduler with the jobs as they are now, and lets later reloads reach it.
func (d *Daemon) attach(o scheduler.Options) (*scheduler.Scheduler, error) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	o.Jobs, o.DefinitionsHash = d.config.Jobs, d.config.Hash
	s, err := scheduler.New(o)
	if err != nil {
		return nil, err
	}
	d.sched = s
	d.working.Store(s)
	d.loaded(Trigger{kind: audit.ActorReplica, id: d.o.Replica})
	return s, nil
}

// compare finds the jobs that are new, gone, or defined in another way.
func compare(old, next *configs.Config) Reloaded {
	r := Reloaded{Jobs: len(next.Jobs), Hash: next.Hash}
	for _, j := range next.Jobs {
		switch before, known := old.JobHashes[j.Name]; {
		case !known:
			r.Added = append(r.Added, j.Name)
		case before != next.JobHashes[j.Name]:
			r.Changed = append(r.Changed, j.Name)
		}
	}
	for _, j := range old.Jobs {
		if _, still := next.JobHashes[j.Name]; !still {
			r.Removed = append(r.Removed, j.Name)
		}
	}
	return r
}

func (d *Daemon) accepted(by Trigger, r *Reloaded) {
	if by.mild && r.Nothing() && d.complaint == "" {
		return
	}
	d.loaded(by)
	for _, name := range slices.Concat(r.Added, r.Changed) {
		d.record(audit.JobDefine, audit.Success, by, audit.Job(name), audit.Definitions(d.config.JobHashes[name]))
	}
	for _, name := range r.Removed {
		d.record(audit.JobRemove, audit.Success, by, audit.Job(name))
	}
	d.o.Log.Info("the configuration was reloaded", zap.String("by", by.id), zap.Int("jobs", r.Jobs),
		zap.Strings("added", r.Added), zap.Strings("removed", r.Removed), zap.Strings("changed", r.Changed))
}

func (d *Daemon) loaded(by Trigger) {
	d.record(audit.ConfigLoad, audit.Success, by, audit.Definitions(d.config.Hash), zap.Int("jobs", len(d.config.Jobs)))
}

// rejected says once what is wrong with a file; it is said again to whoever asked.
func (d *Daemon) rejected(by Trigger, err error) {
	problems := problemLines(err)
	complaint := strings.Join(problems, "\n")
	if by.mild && complaint == d.complaint {
		return
	}
	d.complaint = complaint
	d.record(audit.ConfigReject, audit.Failure, by, audit.Reason(rejection(err)), audit.Problems(problems))
	d.o.Log.Warn("the configuration was rejected; the jobs stay as they were", zap.String("by", by.id), zap.Strings("problems", problems))
}

// problemLines are an error of Reload, one line for each thing that is wrong.
func problemLines(err error) []string {
	var lines []string
	if bad, ok := errors.AsType[*configs.Errors](err); ok {
		for _, p := range bad.Problems {
			lines = append(lines, p.String())
		}
		return lines
	}
	if restart, ok := errors.AsType[*RestartError](err); ok {
		for _, key := range restart.Keys {
			lines = append(lines, key+": only a restart can change this key")
		}
		return lines
	}
	return []string{err.Error()}
}

// rejection is the code of a reason.
func rejection(err error) string {
	if _, ok := errors.AsType[*configs.Errors](err); ok {
		return "invalid"
	}
	if _, ok := errors.AsType[*RestartError](err); ok {
		return "restart"
	}
	return "unreadable"
}

func (d *Daemon) record(a audit.Action, o audit.Outcome, by Trigger, fields ...zap.Field) {
	audit.Log(d.o.Audit, a, o, append([]zap.Field{audit.Actor(by.kind, by.id), audit.Replica(d.o.Replica)}, fields...)...)
}
