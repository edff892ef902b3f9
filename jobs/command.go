package jobs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// baseVariables are what a command inherits from the daemon, and nothing else: DATABASE_URL, tokens and whatever
// else the daemon knows stay with the daemon.
//
//nolint:gochecknoglobals // a closed list
var baseVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Argv is the command line of the attempt: the elements of `command` with their templates filled in, or the shell text
// of `run` for /bin/sh. Nothing is ever split again.
func (a *Attempt) Argv() ([]string, error) {
	if _, err := a.Params(); err != nil {
		return nil, err
	}
	if a.Job.Run != "" {
		return []string{"/bin/sh", "-c", a.Job.Run}, nil
	}
	return Expand(a.Job.Command, a.Values())
}

// Params are the parameters of the attempt: what the run was given, and the defaults. They are checked once more, by the
// definition as it is now: a run may be older than it, and the database is not where definitions are.
func (a *Attempt) Params() (map[string]string, error) { return a.Job.CheckParams(a.Run.Params) }

// Values are what templates in a command may say about the attempt.
func (a *Attempt) Values() Values {
	period, _ := a.Job.Resource.Period(a.Run.ScheduledAt)
	params, _ := a.Params() // who starts something has looked at the error
	return Values{Period: period, ScheduledAt: a.Run.ScheduledAt, Resource: a.Run.Resource, Params: params}
}

// Environ is the whole environment of the command: the base variables of the daemon (through getenv), the job's own
// env and secrets, its parameters, and what cronlatch says about the run, which nothing overrides.
func (a *Attempt) Environ(getenv func(string) string) []string {
	env := map[string]string{"PATH": defaultPath}
	for _, name := range baseVariables {
		if v := getenv(name); v != "" {
			env[name] = v
		}
	}
	maps.Copy(env, a.Job.Env)
	for name, secret := range a.Job.Secrets {
		env[name] = secret.Reveal()
	}
	values := a.Values()
	for name, value := range values.Params {
		env[ParamVariable(name)] = value
	}
	maps.Copy(env, map[string]string{
		"CRONLATCH_JOB":           a.Run.Job,
		"CRONLATCH_RUN_ID":        strconv.FormatInt(a.Run.ID, 10),
		"CRONLATCH_SCHEDULED_AT":  a.Run.ScheduledAt.UTC().Format(time.RFC3339),
		"CRONLATCH_ATTEMPT":       strconv.Itoa(a.Run.Attempt),
		"CRONLATCH_LOCK":          a.Run.Resource,
		"CRONLATCH_FENCING_TOKEN": strconv.FormatInt(a.Run.FencingToken, 10),
		"CRONLATCH_LOCK_EXPIRES":  a.LockExpires.UTC().Format(time.RFC3339Nano),
		"CRONLATCH_PERIOD":        values.Period,
	})
	a.Run.Follows.environ(env)
	if a.TraceParent != "" {
		env["TRACEPARENT"] = a.TraceParent
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		if !strings.ContainsRune(k+v, 0) { // the loader refuses them; a NUL would end the string for the kernel
			list = append(list, k+"="+v)
		}
	}
	slices.Sort(list)
	return list
}
